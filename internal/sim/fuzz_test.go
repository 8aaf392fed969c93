package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"
)

// FuzzRequest: whatever is sent as a request, its prompt has tokens or is refused.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","prompt":"a b c","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`, `{"prompt":[1,2,3]}`, `{"prompt":[[4294967295]]}`, `{"prompt":["a"]}`,
		`{"prompt":["a","b"]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url"}]}]}`, `{"messages":[{"content":null}],"max_tokens":-1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var q request
		if json.Unmarshal(data, &q) != nil {
			return
		}
		_, _ = q.tokens(), q.text()
	})
}

// FuzzGroup: whatever small group serves whatever jobs, and whoever gives up when, all that
// was taken comes back and the others get every token.
func FuzzGroup(f *testing.F) {
	for _, s := range []string{"", "\x01\x02\x03", "\x05\x01\x00\x09\x80\x40\x20\x10\x08\x04", "\x03\xff\xff\xff\xff\x00\x00\x00\x00\x7f\x7f\x7f\x7f\x01\x02\x03\x04"} {
		f.Add([]byte(s))
	}
	names := slices.Sorted(maps.Keys(pooled()))
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(below int) int {
			if len(data) == 0 {
				return 0
			}
			n := int(data[0]) % below
			data = data[1:]
			return n
		}
		name := names[next(len(names))]
		cfg := pooled()[name]
		cfg.Seqs, cfg.Batched, cfg.MaxLen = 1+next(9), 16*(1+next(40)), 3000
		g := mustGroup(t, apart(cfg, 1+next(3), 1+next(3)), Options{KVTokens: 2500 + 20*next(256)})
		var jobs []Job
		for i := range 1 + next(24) {
			j := Job{Index: i, Arrive: time.Duration(next(40)) * 5 * time.Millisecond, Prompt: prompt(next(3), 1+9*next(256)), Output: 1 + next(120)}
			if g.check(j) == nil {
				jobs = append(jobs, j)
			}
		}
		gone := map[int]bool{}
		tokens := runDry(t, name, g, jobs, func(step *Step) {
			if index := next(120); index > 0 && g.live[index] != nil {
				g.cancel(index, step.End+time.Duration(next(200))*time.Millisecond)
				gone[index] = true
			}
		})
		for _, j := range jobs {
			n := 0
			for _, e := range tokens[j.Index] {
				n += e.N
			}
			if !gone[j.Index] && n != j.Output {
				t.Fatalf("%s: job %d has %d of %d tokens", name, j.Index, n, j.Output)
			}
		}
	})
}
