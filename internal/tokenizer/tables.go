package tokenizer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// unicodeTables reads the tables once in a process.
var unicodeTables = sync.OnceValue(func() *tables {
	t, err := readTables(unicodeText)
	if err != nil {
		panic("tokenizer: embedded Unicode tables: " + err.Error())
	}
	return t
})

// activate finds the code points without which a text is in a form already.
func (t *tables) activate() {
	for r := range t.order {
		for f := range t.active {
			t.active[f].add(r)
		}
	}
	for r := range t.canon {
		t.active[formD].add(r)
		t.active[formKD].add(r)
		t.active[formKC].add(r)
		composed := string(t.compose([]rune(t.canon[r])))
		if one, size := utf8.DecodeRuneInString(composed); one != r || size != len(composed) {
			t.active[formC].add(r)
		}
	}
	for r := range t.compat {
		t.active[formKD].add(r)
		t.active[formKC].add(r)
	}
	for r := rune(hangulBase); r < hangulEnd; r++ {
		t.active[formD].add(r)
		t.active[formKD].add(r)
	}
	for p := range t.pair {
		t.active[formC].add(p[1])
		t.active[formKC].add(p[1])
	}
	for r := rune(hangulV); r < hangulT+28; r++ {
		t.active[formC].add(r)
		t.active[formKC].add(r)
	}
}

func readTables(data []byte) (*tables, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	t := &tables{
		lower: map[rune]string{}, canon: map[rune]string{}, compat: map[rune]string{},
		order: map[rune]uint8{}, pair: map[[2]rune]rune{}, fold: map[rune][]rune{},
	}
	flat := make([]uint8, 0x110000)
	known := map[uint64]uint8{}
	start, current := 0, uint8(0)
	fill := func(end int) {
		for i := start; i < end; i++ {
			flat[i] = current
		}
		start = end
	}
	for lines := bufio.NewScanner(z); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, err
			}
			break
		}
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		n, err := numbers(rest)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if kind != "C" {
			t.add(kind, n)
			continue
		}
		fill(int(n[0]))
		index, ok := known[n[1]]
		if !ok {
			index = uint8(len(t.masks))
			known[n[1]] = index
			t.masks = append(t.masks, n[1])
		}
		current = index
	}
	fill(len(flat))
	t.fold['k'], t.fold['s'] = append(t.fold['k'], 'K'), append(t.fold['s'], 'S')
	t.pages(flat)
	t.activate()
	return t, nil
}
