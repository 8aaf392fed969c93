package truth

import (
	"bytes"
	"fmt"
	"strings"
)

// page is what is sent to every stream, rendered once.
type page struct {
	opening []byte // status, headers and the role
	event   []byte // of one token or Pack, with room for the stamp
	first   []byte // the first event, as long and with its stamp in the same place
	stamp   int    // where that is
	closing []byte // finish reason, usage, [DONE] and the end of the body
	merge   int
}

// stampWidth is that of Unix nanoseconds until the year 2286.
const stampWidth = 19

func newPage(p Params, chat bool) *page {
	room := strings.Repeat("0", stampWidth)
	more := strings.Repeat("x", (p.Pack-1)*stampWidth) // each token is as much text
	object, before, after, end := "text_completion", `"text":"`, `"`, `"text":""`
	if chat {
		object, before, after, end = "chat.completion.chunk", `"delta":{"content":"`, `"}`, `"delta":{}`
	}
	event := func(pad, choices, more string) []byte {
		return chunk(`data: {"id":"` + object + `-` + pad + `","object":"` + object + `","created":1764000000,"model":"` + Model +
			`","choices":[` + choices + `]` + more + "}\n\n")
	}
	choice := func(delta, finish string) string {
		return `{"index":0,` + delta + `,"logprobs":null,"finish_reason":` + finish + `}`
	}
	pad := ""
	for {
		g := &page{merge: p.Merge, event: event(pad, choice(before+room+more+after, "null"), "")}
		// A longer length may need one more digit, so one round may not do.
		if short := p.Bytes - len(g.event); short > 0 {
			pad += strings.Repeat("0", short)
			continue
		}
		g.stamp = bytes.LastIndex(g.event, []byte(room+more+`"`))
		if g.first = g.event; p.Alone {
			g.first = event(pad, choice(before+room+after, "null"), strings.Repeat(" ", len(more)))
		}
		g.opening = []byte("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")
		if chat && !p.NoRole {
			g.opening = append(g.opening, event("", choice(`"delta":{"role":"assistant","content":""}`, "null"), "")...)
		}
		g.closing = append(g.closing, event("", choice(end, `"length"`), "")...)
		g.closing = append(g.closing, event("", "", fmt.Sprintf(`,"usage":{"prompt_tokens":0,"total_tokens":%d,"completion_tokens":%d}`, p.generated(), p.generated()))...)
		g.closing = append(g.closing, chunk("data: [DONE]\n\n")...)
		g.closing = append(g.closing, "0\r\n\r\n"...)
		return g
	}
}

func chunk(text string) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(text), text) }

// putStamp writes ns in stampWidth digits.
func putStamp(b []byte, ns int64) {
	u := uint64(ns)
	for i := stampWidth - 1; i >= 0; i-- {
		q := u / 10
		b[i] = byte('0' + u - q*10)
		u = q
	}
}
