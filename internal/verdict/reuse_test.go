package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/reuse"
)

// TestReuse: what the engine did not find of what it could have found is said, with where it was lost.
func TestReuse(t *testing.T) {
	// Three prompts, of which the last begins as the first does for 640 of 1,000 tokens, the second between them.
	prompts := []reuse.Prompt{{Index: 0, Tokens: 640}, {Index: 1, Tokens: 800}, {Index: 2, Tokens: 1000, Like: 1, Alike: 640}}
	run := func(second, third, cached, room int) result.Summary {
		var calls []result.Call
		for i, p := range prompts {
			at := time.Duration(i) * time.Second
			c := result.Call{Index: i, Due: at, Ready: at, Sent: at, End: at + time.Second/2, WantIn: p.Tokens, Want: 1,
				Usage: &result.Usage{Prompt: p.Tokens, Completion: 1}, Chunks: []result.Chunk{{At: at + time.Second/2, Tokens: 1}}}
			calls = append(calls, c)
		}
		calls[1].Target, calls[2].Target = second, third
		calls[2].Usage.Cached = cached
		o := result.Options{Prompts: prompts}
		for target := range max(second, third) + 1 {
			if room > 0 {
				o.Readings = append(o.Readings, gauge.Reading{Source: gauge.SourceEngine, Index: target, Values: map[string]float64{"kv_tokens": float64(room), "kv_block": 16}})
			}
		}
		h := result.Header{Targets: []string{"a", "b"}[:max(second, third)+1], Sharing: true, Requests: 3}
		s, err := Summarize(h, &result.Client{}, o, slices.Values(calls))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, x := range []struct {
		name                        string
		second, third, cached, room int
		want                        string // "": nothing to remark
	}{
		{"all found", 0, 0, 640, 4096, ""},
		{"nearly all found", 0, 0, 540, 4096, ""},
		{"found in another tier", 0, 0, 640, 1024, ""},
		{"too little room", 0, 0, 200, 1024, "for 17.7 % the KV cache of 1024 tokens has no room until they are asked for again"},
		{"some found", 0, 0, 320, 4096, "13.1 % more would have been possible with the room that it has"},
		{"some found, room not known", 0, 0, 320, 0, "13.1 % more would have been possible: see whether its cache has room"},
		{"another replica", 0, 1, 1, 4096, "26.2 % had been sent to another replica"},
		{"does not tell", 0, 0, 0, 4096, ""},
	} {
		c, ok := run(x.second, x.third, x.cached, x.room).Verdict.Check("prefix_reuse")
		if !ok || !strings.Contains(c.Text, x.want) || (c.Status == result.Remark) != (x.want != "") {
			t.Errorf("%s: %s %q, want %q", x.name, c.Status, c.Text, x.want)
		}
	}
	s := run(0, 0, 5, 4096)
	if c, _ := s.Verdict.Check("prefix_reuse"); !strings.Contains(c.Text, "the engine found none of them: see whether its prefix caching is on") {
		t.Error(c.Text)
	}
}
