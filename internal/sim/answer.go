package sim

import (
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"perflab/internal/token"
)

// answer is the text of one completion and how much of it has been sent. The
// text is filler: word i of it depends on the prompt and on i, one token each.
type answer struct {
	trace      *traced // nil: the request is not traced
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
	tell       telling
	guesses    Guesses

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
	a.took(p)
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

// took notes what the engine says of the answer beside its tokens.
func (a *answer) took(p Progress) {
	if a.cached = p.Cached; p.Guesses != nil {
		a.guesses = *p.Guesses
	}
}

// appendEnd appends the usage, if asked for, and the end of the stream.
func (a *answer) appendEnd(b []byte) []byte {
	name, value := a.told()
	if a.tell == tellSGLang && name != "" { // an event of its own, with usage or without
		b = a.appendHead(b)
		b = fmt.Appendf(b, "],%q:%s}\n\n", name, value)
	}
	if a.usage {
		b = a.appendHead(b)
		b = append(b, `],"usage":`...)
		b = a.appendUsage(b)
		if a.tell != tellSGLang && name != "" {
			b = fmt.Appendf(b, ",%q:%s", name, value)
		}
		b = append(b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// telling is whether and how an answer tells what came of its guesses.
type telling byte

const (
	tellNothing telling = iota
	tellVLLM            // in sums
	tellSteps           // and each step
	tellSGLang
)

// told is the field in which an engine tells what came of the guesses; "" where it does
// not. SGLang tells nothing of a request without a guess.
func (a *answer) told() (name string, value []byte) {
	g := a.guesses
	steps, accepted := g.sums()
	length, rate := 1.0, share(accepted, g.Drafted)
	switch {
	case a.tell == tellNothing, a.tell == tellSGLang && steps == 0:
		return "", nil
	case a.tell == tellSGLang:
		return "sglext", fmt.Appendf(nil, `{"routed_experts":null,"cached_tokens_details":null,"spec_tokens_details":{"spec_accept_rate":%g,"spec_accept_length":%g,`+
			`"spec_num_correct_drafts":%d,"spec_num_proposed_drafts":%d,"spec_verify_ct":%d,"spec_correct_drafts_histogram":%s}}`,
			rate, share(a.sent, steps), accepted, g.Drafted, steps, list(g.ByStep))
	case steps > 0:
		length += float64(accepted) / float64(steps)
	}
	value = fmt.Appendf(nil, `{"speculative_decoding":{"mean_acceptance_length":%g,"draft_acceptance_rate":%g,"acceptance_histogram":%s,`+
		`"num_spec_steps":%d,"num_accepted_draft_tokens":%d,"num_draft_tokens":%d,"num_spec_tokens":%d`,
		length, rate, list(g.ByStep), steps, accepted, g.Drafted, len(g.ByStep)-1)
	if a.tell == tellSteps && steps > 0 {
		value = fmt.Appendf(value, `,"per_step_accepted":%s,"per_step_drafted":%s`, list(g.Accepted), list(g.Proposed))
	}
	return "metrics", append(value, "}}"...)
}

// list writes numbers as JSON.
func list(all []int) []byte {
	b, err := json.Marshal(all)
	if err != nil {
		panic("sim: " + err.Error()) // a list of numbers can be marshalled
	}
	return b
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
