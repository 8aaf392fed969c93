package jsonl

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func decode(line []byte, v *map[string]any) error { return json.Unmarshal(line, v) }

// Lines of any length are read, blank ones are left out, and a last one that was cut off is
// dropped.
func TestRead(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	var got []string
	for v, err := range Read(strings.NewReader(`{"a":"`+long+`"}`+"\n\r\n"+`{"a":"b"}`+"\n"+`{"a":"c"}`), "a line", decode) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v["a"].(string))
	}
	if !slices.Equal(got, []string{long, "b", "c"}) {
		t.Errorf("read %d lines", len(got))
	}
	n := 0
	for _, err := range Read(strings.NewReader("{}\n{\"a\":"), "a line", decode) {
		if n++; err != nil {
			t.Errorf("a line that was cut off: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d lines of one and a half", n)
	}
}

// A line that is no value ends the sequence with its number.
func TestReadNamesBadLine(t *testing.T) {
	n := 0
	var last error
	for _, last = range Read(strings.NewReader("{}\n\n[\n{}\n"), "a line", decode) {
		n++
	}
	if n != 2 || last == nil || !strings.HasPrefix(last.Error(), "line 3 is not a line: ") {
		t.Errorf("after %d items: %v; want one line, then an error of line 3", n, last)
	}
}

// line is what the tests write and read.
type line struct {
	Num  int64     `json:"num"`
	Text string    `json:"text"`
	Yes  bool      `json:"yes"`
	List []int32   `json:"list"`
	Late [][]int64 `json:"late"`
	In   struct {
		Num int `json:"num"`
	} `json:"in"`
}

func (l *line) write() []byte {
	w := Writer{}
	w.Begin("")
	w.Num("num", l.Num, false)
	w.Text("text", l.Text)
	w.Yes("yes", l.Yes)
	for i, v := range l.List {
		w.Item("list", i, int64(v))
	}
	if len(l.List) > 0 {
		w.EndList()
	}
	for i, v := range l.Late {
		w.Pair("late", i, v[0], v[1])
	}
	if len(l.Late) > 0 {
		w.EndList()
	}
	w.Begin("in")
	w.Num("num", int64(l.In.Num), true)
	w.End()
	w.End()
	return w.Bytes
}

// parse reads a line by a Parser; false: it is for package json.
func (l *line) parse(b []byte) bool {
	var p Parser
	return p.Line(b, func(key []byte) bool {
		switch string(key) {
		case "num":
			return Number(&p, &l.Num)
		case "text":
			return p.Text(&l.Text)
		case "yes":
			return p.Yes(&l.Yes)
		case "list":
			return Numbers(&p, &l.List)
		case "late":
			return p.Pairs(&l.Late)
		case "in":
			return p.Object(func(key []byte) bool { return string(key) == "num" && Number(&p, &l.In.Num) })
		}
		return false
	})
}

func TestWriterForm(t *testing.T) {
	l := line{Num: -3, Text: "a", Yes: true, List: []int32{1, 0}, Late: [][]int64{{1, 2}, {3, 4}}}
	const want = `{"num":-3,"text":"a","yes":true,"list":[1,0],"late":[[1,2],[3,4]],"in":{"num":0}}`
	if got := string(l.write()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string((&line{}).write()); got != `{"in":{"num":0}}` {
		t.Errorf("nothing is written as %s", got)
	}
}

// TestTextAgain: what was read is written as it was, also where a byte of it had no place in JSON.
func TestTextAgain(t *testing.T) {
	for _, text := range []string{"plain", "\xff\xfe a", "tö\xc3", "\u2028 \x00 \" \\ <&>", "\ufffd"} {
		first := AppendText(nil, text)
		var read string
		if err := json.Unmarshal(first, &read); err != nil {
			t.Fatal(err)
		}
		if again := AppendText(nil, read); string(again) != string(first) {
			t.Errorf("%q is written as %s, and then as %s", text, first, again)
		}
	}
}

// FuzzParser: a line that a Parser reads is one that package json reads to the same, and
// what was written is read.
func FuzzParser(f *testing.F) {
	f.Add([]byte(`{"num":5,"text":"b","late":[[1,2],[]],"list":[-1,2],"in":{"num":1},"yes":true}`), int64(4), "text")
	for _, s := range []string{`{}`, `{"num":01}`, `{"num":1,}`, `{"num":-0}`, `{"list":[99999999999]}`, `{"in":{}}`, `{"yes":false}`, `{"num":1.5}`, `{"text":"x","text":"y"}`} {
		f.Add([]byte(s), int64(1)<<62, "\"quoted\" \u2028 \x00")
	}
	f.Fuzz(func(t *testing.T, data []byte, num int64, text string) {
		var got, want line
		if got.parse(data) {
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatalf("read %q, which json does not: %v", data, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%q: -json +read\n%s", data, diff)
			}
		}
		wrote := line{Num: num, Text: strings.ToValidUTF8(text, "?")}
		var back line
		if err := json.Unmarshal(wrote.write(), &back); err != nil || back.Num != wrote.Num || back.Text != wrote.Text {
			t.Fatalf("%+v is read as %+v, %v", wrote, back, err)
		}
	})
}
