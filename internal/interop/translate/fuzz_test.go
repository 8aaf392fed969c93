package translate

import (
	"strings"
	"testing"

	"perflab/internal/interop/command"
)

// FuzzRead holds, of any text, that what comes out is one command of a shell whose
// words are the flags that were meant, and that a text is refused in words.
func FuzzRead(f *testing.F) {
	for _, text := range commands(f) {
		f.Add(text)
	}
	f.Add("guidellm benchmark --data '{\"prompt_tokens\":' --rate [1,2 --target a;b")
	f.Add("guidellm run --override a --override a 1 --profile rate[0]=1,rate[1]=2")
	f.Add("aiperf profile --model \"a'b$C\" --osl 1 --isl 1 --concurrency 1e999")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := Read(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a word")
			}
			return
		}
		line := strings.ReplaceAll(x.String(), "\\\n", " ")
		want := append([]string{"perflab", "bench"}, x.Args()...)
		var got []string
		for _, w := range command.Split(line) {
			if w.Operator {
				t.Fatalf("an operator %q is in %s", w.Raw, line)
			}
			got = append(got, w.Text())
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("a shell reads %q of %s, and %q was meant", got, line, want)
		}
		for _, n := range x.Notes {
			if n.Flag == "" || n.Text == "" {
				t.Errorf("an empty note: %+v", n)
			}
		}
	})
}
