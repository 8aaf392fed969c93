package openai

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"

	"github.com/google/go-cmp/cmp"
)

// readStream is the call that a body makes when it comes in pieces of n bytes,
// a read each, one millisecond apart.
func readStream(api *dialect, body []byte, n int) result.Call {
	var call result.Call
	s := newStream(&call, api, true)
	at, read := time.Duration(0), int32(0)
	for p := range slices.Chunk(body, n) {
		at, read = at+time.Millisecond, read+1
		if !s.feed(p, at, read-1) {
			s.settle()
			return call
		}
	}
	s.end(at)
	s.settle()
	return call
}

// FuzzStream: any bytes make a call, the same one wherever reads cut them, with
// stamps that never decrease and reads that exist.
func FuzzStream(f *testing.F) {
	whole := role + word("a") + ": ping\n\n" + word("b") + finish + usage(3, 2) + done
	f.Add([]byte(whole), uint8(0), uint16(7))
	f.Add([]byte("\ufeff"+whole), uint8(1), uint16(1))
	f.Add([]byte(`{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}]}`), uint8(0), uint16(9))
	f.Add([]byte("event: error\r\ndata: {\"error\":{\"message\":\"x\"}}\r\n\r\n"), uint8(2), uint16(3))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"thought\":\"x\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"thought\":\"y\"}}]}\n\n"), uint8(0), uint16(5))
	for i, end := range []string{endOfVLLM, detailsOfSGLang, endOfLlama, tokenOfTRTLLM("2.4615385")} {
		f.Add([]byte(word("a")+"data: "+end+"\n\n"+done), uint8(0), uint16(11*i))
	}
	all := dialects()
	f.Fuzz(func(t *testing.T, body []byte, kind uint8, cut uint16) {
		api := all[int(kind)%len(all)]
		want, got := readStream(api, body, len(body)+1), readStream(api, body, int(cut)+1)
		for _, c := range []result.Call{want, got} {
			at, reads := time.Duration(0), len(body)+1
			for _, k := range c.Chunks {
				if k.At < at || k.Tokens < 1 || int(k.Read) >= reads {
					t.Fatalf("chunks %+v", c.Chunks)
				}
				at = k.At
			}
		}
		if d := cmp.Diff(facts(want), facts(got)); d != "" {
			t.Fatalf("-whole +in pieces of %d:\n%s", int(cut)+1, d)
		}
	})
}

// facts are what does not depend on when bytes came.
func facts(c result.Call) result.Call {
	out := result.Call{Text: c.Text, Finish: c.Finish, Usage: c.Usage, Speculation: c.Speculation, Field: c.Field, Class: c.Class, Error: c.Error, FirstText: c.FirstText, StreamText: c.StreamText}
	for _, k := range c.Chunks {
		out.Chunks = append(out.Chunks, result.Chunk{Tokens: k.Tokens})
	}
	out.Empty = make([]result.Stamp, len(c.Empty))
	return out
}

// TestLate: a read that brought a message behind a token is told where it may
// have been late, once, and no other.
func TestLate(t *testing.T) {
	role := strings.Replace(chunkOfVLLM, `"content":" token"`, `"role":"assistant","content":""`, 1)
	done := "data: [DONE]\n\n"
	for name, tt := range map[string]struct {
		reads []string
		span  time.Duration
		want  []result.LateRead
	}{
		"one each":             {reads: []string{chunkOfVLLM, chunkOfVLLM}, span: time.Second},
		"in time":              {reads: []string{chunkOfVLLM + chunkOfVLLM}, span: lateSpan - 1},
		"two":                  {reads: []string{chunkOfVLLM, chunkOfVLLM + chunkOfVLLM, chunkOfVLLM}, span: lateSpan, want: []result.LateRead{{Read: 1, By: lateSpan}}},
		"three":                {reads: []string{strings.Repeat(chunkOfVLLM, 3)}, span: time.Second, want: []result.LateRead{{Read: 0, By: time.Second}}},
		"the first token":      {reads: []string{role + chunkOfVLLM + chunkOfVLLM}, span: time.Second, want: []result.LateRead{{Read: 0, By: time.Second}}},
		"the end behind it":    {reads: []string{chunkOfVLLM + done}, span: time.Second, want: []result.LateRead{{Read: 0, By: time.Second}}},
		"the role before it":   {reads: []string{role + chunkOfVLLM}, span: time.Second},
		"the end of the other": {reads: []string{chunkOfVLLM[:9], chunkOfVLLM[9:] + chunkOfVLLM[:9], chunkOfVLLM[9:]}, span: time.Second},
		"two reads of two":     {reads: []string{chunkOfVLLM + chunkOfVLLM, chunkOfVLLM + done}, span: time.Second, want: []result.LateRead{{Read: 0, By: time.Second}, {Read: 1, By: time.Second}}},
	} {
		call := new(result.Call)
		s := newStream(call, chat(), false)
		for i, text := range tt.reads {
			s.span = tt.span
			for _, p := range []string{text[:len(text)/2], text[len(text)/2:]} { // as HTTP's framing cuts it
				s.feed([]byte(p), time.Duration(i), int32(i))
			}
		}
		if !slices.Equal(call.Late, tt.want) {
			t.Errorf("%s: %v, want %v", name, call.Late, tt.want)
		}
	}
}
