package record_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"perflab/internal/record"
	"perflab/internal/token"
	"perflab/internal/workload/blocktrace"
)

// fixed is a server whose answer to each path is fixed.
func fixed(t *testing.T, answers map[string]string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if text := answers[r.URL.Path]; strings.HasPrefix(text, "data:") {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, text)
		} else {
			io.WriteString(w, text)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// recorded sends requests one after the other, and returns their lines.
func recorded(t *testing.T, o record.Options, answers map[string]string, requests ...[2]string) ([]blocktrace.Row, record.Summary) {
	t.Helper()
	d := through(t, fixed(t, answers).URL, o)
	for _, q := range requests {
		io.Copy(io.Discard, d.post(t, q[0], q[1]).Body)
	}
	sum := d.stop()
	rows, err := record.Read(d.path)
	if err != nil {
		t.Fatal(err)
	}
	return rows, sum
}

// TestAPIs: of each API the lengths, the parameters and what counted them are found.
func TestAPIs(t *testing.T) {
	half := 0.5
	answers := map[string]string{
		"/v1/chat/completions": `{"usage":{"prompt_tokens":130,"completion_tokens":4}}`,
		"/v1/completions":      "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\ndata: [DONE]\n\n",
		"/v1/responses":        `{"usage":{"input_tokens":9,"output_tokens":3}}`,
		"/v1/messages":         `{"usage":{"input_tokens":2,"cache_read_input_tokens":7,"output_tokens":3}}`,
		"/generate":            `{"text":"x","meta_info":{"prompt_tokens":3,"completion_tokens":6}}`,
		"/v1/embeddings":       `{"usage":{"prompt_tokens":3}}`,
	}
	for _, tt := range []struct {
		path, body string
		want       blocktrace.Row
		blocks     int
	}{
		{"/v1/chat/completions", `{"model":"m","n":2,"max_completion_tokens":5,"tools":[{"a":1}],"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"image_url","image_url":{"url":"x"}}]}]}`,
			blocktrace.Row{Input: 130, Output: 4, Recorded: blocktrace.Recorded{API: "chat", Model: "m", Choices: 2, MaxTokens: 5, TextTokens: token.Count(`[{"a":1}]`) + 2}}, 3},
		{"/v1/completions", `{"prompt":"a b c","top_p":0.5,"stream":true}`,
			blocktrace.Row{Input: 3, Output: 2, Recorded: blocktrace.Recorded{API: "completions", Stream: true, TopP: &half, InputBy: "estimate", OutputBy: "events", TextTokens: 3}}, 1},
		{"/v1/completions", `{"prompt":[[5,6,7,8]],"stream":true}`,
			blocktrace.Row{Input: 4, Output: 2, Recorded: blocktrace.Recorded{API: "completions", Stream: true, InputBy: "estimate", OutputBy: "events", TextTokens: 4}}, 1},
		{"/v1/responses", `{"instructions":"be","input":"a b","max_output_tokens":7}`,
			blocktrace.Row{Input: 9, Output: 3, Recorded: blocktrace.Recorded{API: "responses", MaxTokens: 7, TextTokens: 3}}, 1},
		{"/v1/messages", `{"system":"be","max_tokens":8,"messages":[{"role":"user","content":"a b"}]}`,
			blocktrace.Row{Input: 9, Output: 3, Recorded: blocktrace.Recorded{API: "messages", MaxTokens: 8, TextTokens: 3}}, 1},
		{"/generate", `{"text":"a b c","sampling_params":{"max_new_tokens":6,"temperature":0.5}}`,
			blocktrace.Row{Input: 3, Output: 6, Recorded: blocktrace.Recorded{API: "generate", MaxTokens: 6, Temperature: &half, TextTokens: 3}}, 1},
		{"/v1/chat/completions", `no JSON`,
			blocktrace.Row{Input: 130, Output: 4, Recorded: blocktrace.Recorded{API: "chat", BlocksBy: "unknown"}}, 3},
	} {
		rows, _ := recorded(t, record.Options{}, answers, [2]string{tt.path, tt.body})
		if len(rows) != 1 {
			t.Fatalf("%s: %d lines", tt.body, len(rows))
		}
		got := rows[0]
		if got.Block != record.DefaultBlock || got.Status != 200 || len(got.IDs) != tt.blocks || got.Duration <= 0 || got.FirstByte <= 0 || got.Session == "" && got.BlocksBy != "unknown" {
			t.Errorf("%s: %+v", tt.body, got)
		}
		if tt.want.BlocksBy == "" {
			tt.want.BlocksBy = "estimate"
		}
		got.Block, got.Status, got.IDs, got.Duration, got.FirstByte, got.Session = 0, 0, nil, 0, 0, ""
		if a, b := text(t, got), text(t, tt.want); a != b {
			t.Errorf("%s:\n%s\n%s wanted", tt.body, a, b)
		}
	}
	rows, sum := recorded(t, record.Options{}, answers, [2]string{"/v1/embeddings", `{"input":"a"}`}, [2]string{"/v1/completions", `{"prompt":["a","b"]}`})
	if len(rows) != 0 || sum.Others != 1 || sum.Several != 1 {
		t.Errorf("%d lines, %+v", len(rows), sum)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func chatOf(turns ...string) [2]string {
	var b strings.Builder
	for i, text := range turns {
		fmt.Fprintf(&b, `,{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
	}
	return [2]string{"/v1/chat/completions", `{"messages":[` + b.String()[1:] + `]}`}
}

// TestSessionsByGrowth: a request whose prompt goes on from an earlier one's is of its session; one that only begins alike is not.
func TestSessionsByGrowth(t *testing.T) {
	long := strings.Repeat(" word", 300)
	raw := func(text string) [2]string { return [2]string{"/v1/completions", fmt.Sprintf(`{"prompt":%q}`, text)} }
	rows, sum := recorded(t, record.Options{Block: 16}, nil,
		chatOf("hello"),                          // 0
		chatOf("hello", "yes", "more"),           // 1: of 0
		chatOf("hello there"),                    // 2: another
		chatOf(long, "a", "b"),                   // 3: another
		chatOf("hello", "yes", "more", "x", "y"), // 4: of 1
		chatOf(long, "a", "b", "c", "d"),         // 5: of 3
		chatOf(long, "a", "bb", "c", "d"),        // 6: another
		chatOf("hello"),                          // 7: another, which begins anew
		raw("one two"+long),                      // 8
		raw("one two"+long+" and on"),            // 9: of 8
	)
	var got []int
	for _, r := range rows {
		got = append(got, slices.IndexFunc(rows, func(q blocktrace.Row) bool { return q.Session == r.Session }))
	}
	if want := []int{0, 0, 2, 3, 0, 3, 6, 7, 8, 8}; !slices.Equal(got, want) || sum.Sessions != 6 {
		t.Errorf("sessions %v, want %v; %d counted", got, want, sum.Sessions)
	}
}

// TestSalt: with the same salt equal beginnings have equal ids in every recording, with another one none.
func TestSalt(t *testing.T) {
	prompt := func(tail string) [2]string {
		return [2]string{"/v1/completions", fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("word ", 63)+"end"+tail)}
	}
	ids := func(salt string, q [2]string) []int64 {
		o := record.Options{}
		if salt != "" {
			o.Salt = []byte(salt)
		}
		rows, _ := recorded(t, o, nil, q)
		return rows[0].IDs
	}
	a, again, longer := ids("s", prompt(" a")), ids("s", prompt(" a")), ids("s", prompt(" b c"))
	if len(a) != 2 || !slices.Equal(a, again) || a[0] != longer[0] || a[1] == longer[1] {
		t.Errorf("%v, %v, %v", a, again, longer)
	}
	for _, other := range [][]int64{ids("t", prompt(" a")), ids("", prompt(" a"))} {
		if other[0] == a[0] || other[1] == a[1] {
			t.Errorf("%v and %v with another salt", a, other)
		}
	}
}

// TestNothingSecret: neither texts nor headers nor the name of a session are in the file, unless the prompts are asked for.
func TestNothingSecret(t *testing.T) {
	answer := map[string]string{"/v1/chat/completions": `{"choices":[{"message":{"content":"answeredword"}}],"usage":{"prompt_tokens":2,"completion_tokens":1}}`}
	for _, keep := range []bool{false, true} {
		d := through(t, fixed(t, answer).URL, record.Options{SessionHeader: "X-Session-Id", Text: keep})
		for range 2 {
			d.post(t, "/v1/chat/completions", `{"user":"username","messages":[{"role":"user","content":"promptword"}]}`, "Authorization", "Bearer sk-topsecret", "X-Session-ID", "sessionname")
		}
		rows := d.rows(t, 2)
		if rows[0].Session == "" || rows[0].Session != rows[1].Session {
			t.Errorf("sessions %q and %q", rows[0].Session, rows[1].Session)
		}
		file, err := os.ReadFile(d.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"topsecret", "sessionname", "answeredword", "username", "promptword"} {
			if strings.Contains(string(file), word) != (keep && word == "promptword") {
				t.Errorf("with texts %t, %q: %s", keep, word, file)
			}
		}
		if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
}

// TestMemory: a body that there is no room for passes, and is recorded without its blocks.
func TestMemory(t *testing.T) {
	answer := map[string]string{"/v1/completions": `{"usage":{"prompt_tokens":200,"completion_tokens":1}}`}
	q := [2]string{"/v1/completions", fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("word ", 200))}
	rows, sum := recorded(t, record.Options{Memory: 100}, answer, q, q)
	if len(rows) != 2 || rows[0].Input != 200 || rows[0].BlocksBy != "unknown" || len(rows[0].IDs) != 4 || rows[0].IDs[0] == rows[1].IDs[0] || sum.Shared != 0 {
		t.Errorf("%+v, %d shared", rows, sum.Shared)
	}
	if lines := strings.Join(sum.Lines(), "\n"); !strings.Contains(lines, "the prompts of 2 requests were not taken apart") {
		t.Error(lines)
	}
}
