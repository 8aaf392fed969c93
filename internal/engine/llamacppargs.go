package engine

import (
	"cmp"
	"fmt"
	"strconv"
)

// llamacppAutoSlots is how many slots share the context where their number is not given.
const llamacppAutoSlots = 4

// llamacppSpell is a parameter as llama-server's flags.
func (s speller) llamacppSpell(p *Param, value string) ([]string, error) {
	switch {
	case p.Name == MaxModelLen:
		return s.llamacppContext(value)
	case p.fixed():
		return nil, s.engine.lacks(p, value)
	case p.Kind == Bool:
		return p.switchArgs(s.engine, s.Command, value)
	}
	value = cmp.Or(p.Spell[value], value)
	if p.Name == KVDtype {
		return []string{"-ctk", value, "-ctv", value}, nil
	}
	return []string{s.engine.spelling(s.Command, p.Flags), value}, nil
}

// llamacppContext gives every slot a context of so many tokens.
func (s speller) llamacppContext(length string) ([]string, error) {
	if given := s.Params[ContextSize]; given != "" && given != "0" {
		return nil, &Rejection{Rule: "context", Log: "error: invalid argument: --max-model-len",
			Reason: fmt.Sprintf("%s=%s and %s=%s both set the context of llama.cpp: give one of them", MaxModelLen, length, ContextSize, given)}
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("parameter %s=%q: not a number of tokens", MaxModelLen, length)
	}
	slots, _ := s.llamacppSlots()
	return []string{"-c", strconv.Itoa(n * slots)}, nil
}

// llamacppSlots is the number of slots, and whether they share one context.
func (c Command) llamacppSlots() (slots int, unified bool) {
	slots = c.number(MaxNumSeqs, 0)
	if slots <= 0 {
		return llamacppAutoSlots, true
	}
	value, given := c.extra("--kv-unified")
	return slots, given && value != "false"
}

// SlotContext is how many tokens a request may have, prompt and output, as far as the
// command tells; 0 where the model's own context decides. llama-server rounds up to
// whole 256.
func (c Command) SlotContext() int {
	size := c.number(ContextSize, 0)
	if c.Engine != "llamacpp" || size <= 0 {
		return 0
	}
	slots, unified := c.llamacppSlots()
	size = roundUp(size, 256)
	if unified {
		if limit, err := strconv.Atoi(c.Flag("--kv-unified-per-slot")); err == nil && limit > 0 {
			return min(size, limit)
		}
		return size
	}
	return roundUp(size/slots, 256)
}
