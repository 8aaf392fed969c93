package sim

import (
	"encoding/json"
	"iter"
	"strconv"

	"perflab/internal/token"
)

// answer is the text of one completion and how much of it has been sent. The
// text is filler: word i of it depends on the prompt and on i, one token each.
type answer struct {
	id         string
	model      string // as JSON
	chat       bool
	created    int64
	seed       uint64 // hash of the prompt
	prompt     int    // tokens
	output     int
	reasoning  int // of the output, at its beginning
	finish     string
	usage      bool // an event with the usage at the end
	continuous bool // the usage so far in every event
	sent       int
	cached     int

	tail   []string // last tokens of the output in place of words
	own    uint64   // seed of the text from token common on; 0: all of it is common
	common int
}

// words are tokens lo to hi of the text. The first of the reasoning and of the
// content has no space in front.
func (a *answer) words(lo, hi int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := lo; i < hi; i++ {
			if !yield(a.word(i)) {
				return
			}
		}
	}
}

func (a *answer) word(i int) string {
	if k := i - (a.output - len(a.tail)); k >= 0 {
		return a.tail[k]
	}
	seed := a.seed
	if a.own != 0 && i >= a.common {
		seed ^= a.own
	}
	w := token.Word(int(mix(seed+uint64(i)) >> 1))
	if i == 0 || i == a.reasoning {
		w = w[1:]
	}
	return w
}

// appendEvent appends the event of one step's tokens, before the first of a
// chat the one that names the role.
func (a *answer) appendEvent(b []byte, p Progress) []byte {
	lo := a.sent
	if a.chat && lo == 0 {
		b = a.appendHead(b)
		b = append(b, `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		b = a.appendTail(b)
	}
	a.sent += p.N
	a.cached = p.Cached
	b = a.appendHead(b)
	if a.chat {
		b = append(b, `{"index":0,"delta":{`...)
		if lo < a.reasoning {
			b = append(b, `"reasoning":`...)
			b = a.appendText(b, lo, min(a.sent, a.reasoning))
			if a.sent > a.reasoning {
				b = append(b, ',')
			}
		}
		if a.sent > a.reasoning {
			b = append(b, `"content":`...)
			b = a.appendText(b, max(lo, a.reasoning), a.sent)
		}
		b = append(b, '}')
	} else {
		b = append(b, `{"index":0,"text":`...)
		b = a.appendText(b, lo, a.sent)
	}
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if p.Done {
		b = strconv.AppendQuote(b, a.finish)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, "}]"...)
	return a.appendTail(b)
}

// appendEnd appends the usage, if asked for, and the end of the stream.
func (a *answer) appendEnd(b []byte) []byte {
	if a.usage {
		b = a.appendHead(b)
		b = append(b, `],"usage":`...)
		b = a.appendUsage(b)
		b = append(b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (a *answer) appendHead(b []byte) []byte {
	b = append(b, `data: {"id":"`...)
	b = append(b, a.id...)
	if a.chat {
		b = append(b, `","object":"chat.completion.chunk","created":`...)
	} else {
		b = append(b, `","object":"text_completion","created":`...)
	}
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	b = append(b, a.model...)
	return append(b, `,"choices":[`...)
}

func (a *answer) appendTail(b []byte) []byte {
	if a.continuous {
		b = append(b, `,"usage":`...)
		b = a.appendUsage(b)
	}
	return append(b, "}\n\n"...)
}

func (a *answer) appendUsage(b []byte) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(a.prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(a.prompt+a.sent), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(a.sent), 10)
	if a.cached > 0 {
		b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
		b = strconv.AppendInt(b, int64(a.cached), 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendText appends tokens lo to hi as a JSON string: words are plain ASCII, and
// the tail of a solution may be anything.
func (a *answer) appendText(b []byte, lo, hi int) []byte {
	if len(a.tail) > 0 && hi > a.output-len(a.tail) {
		var text []byte
		for w := range a.words(lo, hi) {
			text = append(text, w...)
		}
		quoted, err := json.Marshal(string(text))
		if err != nil {
			panic("sim: " + err.Error()) // a string can be marshalled
		}
		return append(b, quoted...)
	}
	b = append(b, '"')
	for w := range a.words(lo, hi) {
		b = append(b, w...)
	}
	return append(b, '"')
}
