package sim

import (
	"encoding/json"
	"testing"
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
