package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// want is what the reference library makes of the texts; testdata/make.py.
type want struct {
	Vocab   int
	Special []int32
	Around  [2][]int32
	Texts   []struct {
		IDs     []int32 // nil: the reference refuses
		N       *int    // with the template, where that is not the sum
		Decoded *string // where it is not the text
		Back    *string // the ids backwards
	}
}

func unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func decodeJSON(tb testing.TB, data []byte, v any) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		tb.Fatal(err)
	}
}

func fixture(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	t, err := Parse(unzip(tb, filepath.Join("testdata", name+".json.gz")))
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return t
}

func fixtures(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.want.gz")
	if err != nil || len(files) < 20 {
		tb.Fatalf("%d fixtures, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".want.gz")
	}
	return files
}

func TestFixturesAgreeWithTheReference(t *testing.T) {
	var texts []string
	decodeJSON(t, unzip(t, "testdata/texts.gz"), &texts)
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			var w want
			decodeJSON(t, unzip(t, "testdata/"+name+".want.gz"), &w)
			compare(t, fixture(t, name), texts, w)
		})
	}
}

// TestFilesAgreeWithTheReference compares whole tokenizers of served models,
// which are too large to keep here: make.py --real says what to put where.
func TestFilesAgreeWithTheReference(t *testing.T) {
	dir := os.Getenv("PERFLAB_TOKENIZERS")
	if dir == "" {
		t.Skip("PERFLAB_TOKENIZERS names no folder of tokenizers and answers")
	}
	var texts []string
	decodeJSON(t, unzip(t, filepath.Join(dir, "texts.gz")), &texts)
	files, err := filepath.Glob(filepath.Join(dir, "*", "want.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no want.gz in the folders of %s", dir)
	}
	for _, f := range files {
		t.Run(filepath.Base(filepath.Dir(f)), func(t *testing.T) {
			var w want
			decodeJSON(t, unzip(t, f), &w)
			k, err := Open(filepath.Dir(f))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, k, texts, w)
		})
	}
}

func compare(t *testing.T, k *Tokenizer, texts []string, w want) {
	t.Helper()
	if got := everyToken(k); got != w.Vocab {
		t.Errorf("Vocab() = %d, the reference has %d", got, w.Vocab)
	}
	ordinary := k.Ordinary()
	if !slices.IsSorted(ordinary) {
		t.Error("Ordinary() is not ascending")
	}
	for _, id := range w.Special {
		if _, found := slices.BinarySearch(ordinary, id); found {
			t.Errorf("special token %d is among the ordinary ones", id)
		}
	}
	if len(texts) != len(w.Texts) {
		t.Fatalf("%d texts, %d answers", len(texts), len(w.Texts))
	}
	wrong := 0
	for i, text := range texts {
		if !same(t, k, text, i, w, wrong < 5) {
			wrong++
		}
	}
	t.Logf("%d of %d texts differ", wrong, len(texts))
}

func same(t *testing.T, k *Tokenizer, text string, i int, w want, tell bool) bool {
	t.Helper()
	ok, a := true, w.Texts[i]
	fail := func(format string, args ...any) {
		t.Helper()
		ok = false
		if tell {
			t.Errorf("text %d %+q: "+format, append([]any{i, text}, args...)...)
		} else {
			t.Fail()
		}
	}
	ids, err := k.Encode(text, false)
	if a.IDs == nil {
		if err == nil {
			fail("the reference refuses, we give %v", ids)
		}
		return ok
	}
	if err != nil || !slices.Equal(ids, a.IDs) {
		fail("\n got %v %v\nwant %v", ids, err, a.IDs)
		return ok
	}
	all, err := k.Encode(text, true)
	expect := slices.Concat(w.Around[0], a.IDs, w.Around[1])
	if a.N != nil || err != nil || !slices.Equal(all, expect) {
		fail("with the template %v %v, want %v", all, err, expect)
	}
	if n := k.Count(text); n != len(a.IDs) {
		fail("Count() = %d, want %d", n, len(a.IDs))
	}
	decoded, err := k.Decode(ids)
	if a.Decoded == nil {
		a.Decoded = &text
	}
	if err != nil || decoded != *a.Decoded {
		fail("\n got %+q %v\nwant %+q", decoded, err, *a.Decoded)
	}
	if a.Back != nil {
		slices.Reverse(ids)
		if back, err := k.Decode(ids); err != nil || back != *a.Back {
			fail("backwards\n got %+q %v\nwant %+q", back, err, *a.Back)
		}
	}
	return ok
}

// everyToken returns the number of tokens, added ones included.
func everyToken(t *Tokenizer) int {
	v := t.model.vocab()
	n := len(v.ids)
	for token := range t.added.ids {
		if _, ok := v.ids[token]; !ok {
			n++
		}
	}
	return n
}
