package token

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// cut returns the longest prefix of text that has at most n tokens.
func cut(text string, n int) string {
	i := 0
	for ; n > 0 && i < len(text); n-- {
		i += next(text[i:])
	}
	return text[:i]
}

// pieces splits text by repeated cut.
func pieces(text string) []string {
	var out []string
	for text != "" {
		p := cut(text, 1)
		out = append(out, p)
		text = text[len(p):]
	}
	return out
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // pieces separated by |
	}{
		{"", ""},
		{"Hello, world!", "Hello|,| world|!"},
		{"it's they'll don't 'quoted'", "it|'s| they|'ll| don|'t| '|quoted|'"},
		{"in 2023 12345", "in| |202|3| |123|45"},
		{"a  b\n\n  c", "a| | b|\n\n| | c"},
		{"x \n y", "x| \n| y"},
		{"a\n  b", "a|\n| | b"},
		{"x.hello x.banana", "x|.hello| x|.|banana"},
		{"camelCase HTTPServer URLs NASAX", "camel|Case| HTTP|Server| UR|Ls| NASA|X"},
		{"example.com snake_case (foobar", "example|.com| snake|_case| (|foobar"},
		{"x == y); // ---- end", "x| ==| y|);| //| ----| end"},
		{"stop.\nGo", "stop|.\n|Go"},
		{"internationalization", "internatio|nalization"},
		{"préférence", "préf|érence"},
		{"привет мир", "при|вет| мир"},
		{"你好，世界", "你|好|，|世|界"},
		{"ok 👍🎉", "ok| 👍|🎉"},
		{"a\xffb \xe4\xb8", "a|\xff|b| \xe4|\xb8"},
		{strings.Repeat(" ", 70) + "x", strings.Repeat(" ", 64) + "|     | x"},
		{strings.Repeat("-", 20), strings.Repeat("-", 16) + "|----"},
	} {
		if got := strings.Join(pieces(tt.text), "|"); got != tt.want {
			t.Errorf("pieces of %q\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

// The counts beside the texts are cl100k_base's own.
func TestCountNearVocabulary(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cl100k int
		text   string
	}{
		{"prose", 73, "When the river rose that spring, the farmers moved their animals to higher ground and waited. Nobody in the village could remember a flood like it; even the oldest houses near the bridge, which had stood for two hundred years, lost their doors and windows. By the end of the week the water had gone, leaving mud, branches and a great many stories behind."},
		{"figures", 69, "Maria buys 12 boxes of pencils at $3.50 each and sells 9 of them for $5.25. She spent 12 * 3.5 = $42 and earned 9 * 5.25 = $47.25, so her profit is 47.25 - 42 = $5.25."},
		{"code", 83, "func (s *Server) Handle(w http.ResponseWriter, r *http.Request) error {\n\tif r.Method != \"POST\" {\n\t\treturn fmt.Errorf(\"method %s is not allowed\", r.Method)\n\t}\n\tfor i, item := range s.items {\n\t\tif item.Name == r.FormValue(\"name\") {\n\t\t\treturn s.write(w, i, item)\n\t\t}\n\t}\n\treturn nil\n}\n"},
		{"list", 42, "Steps to follow:\n\n1. Install the package.\n2. Open the settings file (config.yaml).\n3. Set `timeout` to 30 seconds.\n\n- [x] tested\n- [ ] released\n"},
	} {
		got := Count(tt.text)
		if e := float64(got)/float64(tt.cl100k) - 1; math.Abs(e) > 0.10 {
			t.Errorf("%s: counts %d, cl100k_base %d (%+.1f %%)", tt.name, got, tt.cl100k, 100*e)
		}
	}
}

func TestAppend(t *testing.T) {
	ids := Append(nil, "the cat the cat")
	if len(ids) != 4 || ids[1] != ids[3] || ids[0] == ids[1] || ids[0] == ids[2] {
		t.Errorf("ids %x: want four, of which only the second and last are equal", ids)
	}
	// The ids are part of what a simulator's prefix cache and a recorded
	// workload agree on across builds.
	if want := []uint32{0x6359567a}; !cmp.Equal(Append(nil, " the"), want) {
		t.Errorf("id of \" the\" is %x, want %x", Append(nil, " the"), want)
	}
	dst := make([]uint32, 0, 16)
	if n := testing.AllocsPerRun(100, func() { dst = Append(dst[:0], "no room beyond dst is taken") }); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
}

func TestWords(t *testing.T) {
	if n := Words(); n < 1000 {
		t.Fatalf("only %d words", n)
	}
	var all []string
	ids := map[uint32]bool{}
	for i := range Words() {
		w := Word(i)
		all = append(all, w)
		if w[0] != ' ' || Count(w) != 1 || Count(w[1:]) != 1 {
			t.Errorf("%q is not one token with and without its space", w)
		}
		ids[Append(nil, w)[0]] = true
	}
	if len(ids) != Words() {
		t.Errorf("%d words have %d different ids", Words(), len(ids))
	}
	if !slices.IsSorted(all) {
		t.Error("words are not in order")
	}
	if n := Count(strings.Join(all, "")[1:]); n != Words() {
		t.Errorf("all words in a row are %d tokens, want %d", n, Words())
	}
	if Word(-1) != Word(Words()-1) || Word(Words()) != Word(0) {
		t.Error("Word does not wrap around")
	}
}

// TestRealTexts needs the shared data beside the repository and skips without.
func TestRealTexts(t *testing.T) {
	dir := filepath.FromSlash("../../../shared/traces")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no ../shared/traces beside the repository")
	}
	for _, tt := range []struct {
		file   string
		cl100k int // tokens of the whole file by cl100k_base
	}{{"gsm8k_test.jsonl", 228525}, {"sharegpt_dummy.json", 63895}} {
		b, err := os.ReadFile(filepath.Join(dir, tt.file))
		if err != nil {
			t.Fatal(err)
		}
		got := Count(string(b))
		if e := float64(got)/float64(tt.cl100k) - 1; math.Abs(e) > 0.05 {
			t.Errorf("%s: counts %d, cl100k_base %d (%+.1f %%)", tt.file, got, tt.cl100k, 100*e)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"Hello, world!", "a  b\n\n \n c\t\td", "HTTPServer ABCDEf it'S 'LL 'll", "((foo.barBaz ..é _id",
		"你好，世界 👍 é\u00a0x", "\xff\xe4\xb8 a\xe4", strings.Repeat(" \n", 50) + strings.Repeat(" ", 66) + "9", "===== =!= 12345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := Append(nil, text)
		if n := Count(text); n != len(ids) {
			t.Fatalf("Count %d, Append %d", n, len(ids))
		}
		if cut(text, len(ids)) != text || cut(text, -1) != "" {
			t.Fatal("cut at the ends is not all and nothing")
		}
		valid := utf8.ValidString(text)
		end := 0
		for n := range ids {
			p := cut(text, n)
			if n > 0 && len(p) <= end {
				t.Fatalf("token %d is empty", n-1)
			}
			end = len(p)
			if !strings.HasPrefix(text, p) || valid && !utf8.ValidString(p) {
				t.Fatalf("cut(%q, %d) = %q", text, n, p)
			}
			if got := Append(nil, p); !slices.Equal(got, ids[:n]) {
				t.Fatalf("tokens of cut(%q, %d) = %q are not the text's first ones", text, n, pieces(p))
			}
		}
	})
}

func benchText(b *testing.B) string {
	text, err := json.Marshal(wordList) // words and \n escapes
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat("The \"answer\" isn't 42, it's 1,337.50 (see HTTPServer.go):\n\n"+string(text[:400])+" naïve 你好 ", 200)
}

func BenchmarkCount(b *testing.B) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Count(text)
	}
}

func BenchmarkAppend(b *testing.B) {
	text := benchText(b)
	dst := make([]uint32, 0, len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		dst = Append(dst[:0], text)
	}
}
