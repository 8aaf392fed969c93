package tokenizer

import (
	"errors"
	"fmt"
)

// useProcessor notes what is put before and after a text.
func (t *Tokenizer) useProcessor(p part) error {
	var before, after []int32
	switch p.Type {
	case "Sequence":
		for _, q := range p.Processors {
			if err := t.useProcessor(q); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel": // concerns offsets
		return nil
	case "BertProcessing", "RobertaProcessing":
		if !p.Cls.known || !p.Sep.known {
			return fmt.Errorf("%s: cls or sep is missing", p.Type)
		}
		before, after = []int32{p.Cls.id}, []int32{p.Sep.id}
	case "TemplateProcessing":
		var err error
		if before, after, err = template(p); err != nil {
			return fmt.Errorf("TemplateProcessing: %w", err)
		}
	default:
		return errUnknown(p)
	}
	if t.template {
		return errors.New("more than one processor that adds tokens is not supported")
	}
	t.template, t.before, t.after = true, before, after
	return nil
}

func template(p part) (before, after []int32, err error) {
	seen := 0
	for _, item := range p.Single {
		switch {
		case item.Sequence != nil && item.Sequence.ID == "A":
			seen++
		case item.SpecialToken != nil:
			k, ok := p.SpecialTokens[item.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("special_tokens lacks %q", item.SpecialToken.ID)
			}
			if seen == 0 {
				before = append(before, k.IDs...)
			} else {
				after = append(after, k.IDs...)
			}
		default:
			return nil, nil, errors.New("a step of single is neither the text nor a special token")
		}
	}
	if seen != 1 {
		return nil, nil, fmt.Errorf("single has the text %d times, only once is supported", seen)
	}
	return before, after, nil
}
