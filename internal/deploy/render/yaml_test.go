package render

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"
)

// awkward are pieces of text that YAML may take for something else.
var awkward = []string{"", " ", "a", "true", "Yes", "off", "y", "null", "~", "1", "0x1f", "1e3", "-", "- a", "a: b", "a #b", "#", "é", "\u0085", "\ufeff", "\t", "a\nb", "\n", "\r",
	"'", `"`, `\`, "[", "{a", "&x", "*x", "!t", "%d", "@", "`", "2026-01-01", "12:30", ".inf", "a\x7f", "=", "<<", "?", "|", ">", "---", "...", "\u2028", "𝄞", "$(A)", "/a/b"}

// TestTexts: whatever a text holds, it is read back as that text, as a value, a
// key and an element of a list.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(awkward[r.IntN(len(awkward))])
		}
		if r.IntN(2) == 0 {
			b.WriteString("\n")
		}
		text := b.String()
		if text == "" {
			continue
		}
		var out strings.Builder
		if err := writeYAML(&out, object{{"a", text}, {"list", list{text, "b"}}, {"deep", object{{"texts", list{object{{"b", text}}}}, {"k" + text, "v"}}}}); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"a": text, "list": []any{text, "b"}, "deep": map[string]any{"texts": []any{map[string]any{"b": text}}, "k" + text: "v"}}
		var got map[string]any
		err := yaml.Load([]byte(out.String()), &got)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("%q: %v\n%s\n%s", text, err, out.String(), d)
		}
		if slices.Contains(strings.Split(out.String(), "\n"), "a: "+text) && yamlWord.MatchString(text) {
			t.Errorf("%q is a word of older YAML, and has no quotes", text)
		}
	}
}
