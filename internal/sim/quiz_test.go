package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/sim"
	"perflab/internal/stat"
	"perflab/internal/test/simtest"
	"perflab/internal/token"
)

func quizOf(n int) (out []sim.Question) {
	for i := range n {
		out = append(out, sim.Question{Text: fmt.Sprintf("Question %d: how many?", i), Right: "70,001", Wrong: "12"})
	}
	return append(out, sim.Question{Text: "Short?", Right: `so "\` + "\u00e9\n" + `" it is`, Wrong: "no"})
}

// ask streams a chat answer and returns its text, tokens by usage and finish.
func ask(t *testing.T, e *simtest.Engine, prompt string, tokens int) (text string, used int, finish string) {
	t.Helper()
	quoted, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	resp := post(t, e, "/v1/chat/completions", fmt.Sprintf(`{"stream":true,"max_tokens":%d,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%s}]}`, tokens, quoted))
	events, done, err := readStream(resp.Body, time.Now())
	if err != nil || !done {
		t.Fatal(done, err)
	}
	for _, ev := range events {
		for _, c := range ev.Choices {
			text += c.Delta.Content
			if c.FinishReason != nil {
				finish = *c.FinishReason
			}
		}
		if ev.Usage != nil {
			used = ev.Usage.Completion
		}
	}
	return text, used, finish
}

var lastLine = regexp.MustCompile(`\n#### (?s:(.+))$`)

// TestQuiz: as many questions are answered right as declared, and those that the
// declaration says; the answer ends by itself, and its tokens are the text's.
func TestQuiz(t *testing.T) {
	o := small
	o.Server.Questions = quizOf(100)
	o.Server.Declared = stat.Declared{Accuracy: 0.7, Flips: 0.1, Agreement: 1, Numerics: "x"}
	synctest.Test(t, func(t *testing.T) {
		e := simtest.Start(t, config(), o)
		right := 0
		for _, q := range o.Server.Questions {
			text, used, finish := ask(t, e, "Please answer.\n"+q.Text+"\nThank you.", 200)
			m := lastLine.FindStringSubmatch(text)
			want := q.Wrong
			if o.Server.Declared.Right(q.Text) {
				want = q.Right
				right++
			}
			if m == nil || m[1] != want || finish != "stop" {
				t.Errorf("%q: %q (%s), want %q", q.Text, text, finish, want)
			}
			if n := token.Count(text); n != used {
				t.Errorf("%q: %d tokens, %d by usage", text, n, used)
			}
		}
		if right < 60 || right > 80 {
			t.Errorf("%d of 101 are right", right)
		}
		text, used, finish := ask(t, e, "Question 3: how many?", 10)
		if used != 10 || finish != "length" || strings.Contains(text, "####") {
			t.Errorf("cut off: %q, %d tokens, %s", text, used, finish)
		}
		if text, _, finish := ask(t, e, "Question 3: how much?", 20); finish != "length" || strings.Contains(text, "####") {
			t.Errorf("no question: %q", text)
		}
	})
}

// TestNumerics: a text leaves that of an engine without numerics where it is
// declared to, and is its own from there.
func TestNumerics(t *testing.T) {
	const prompt, n = "Tell me a story.", 64
	texts := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		for _, k := range []struct {
			name string
			d    stat.Declared
		}{
			{"", stat.Declared{}},
			{"alike", stat.Declared{Agreement: 1, Numerics: "a"}},
			{"a", stat.Declared{Agreement: 0.5, Numerics: "a"}},
			{"b", stat.Declared{Agreement: 0.5, Numerics: "b"}},
		} {
			name, d := k.name, k.d
			o := small
			o.Server.Declared = d
			texts[name], _, _ = ask(t, simtest.Start(t, config(), o), prompt, n)
			same, words := 0, strings.Fields(texts[name])
			base := strings.Fields(texts[""])
			if name == "" {
				continue
			}
			for same < n && words[same] == base[same] {
				same++
			}
			if want := d.Common(prompt, n); same != want {
				t.Errorf("%s: %d words in common, want %d", name, same, want)
			}
		}
	})
	if texts["alike"] != texts[""] || texts["a"] == texts["b"] || texts["a"] == texts[""] {
		t.Errorf("%q", texts)
	}
}

func BenchmarkFindQuestion(b *testing.B) {
	prompt := bytes.Repeat([]byte("the quick brown fox jumps "), 200)
	find := sim.FindQuestion(quizOf(1319))
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		if find(string(prompt)) {
			b.Fatal("found")
		}
	}
}
