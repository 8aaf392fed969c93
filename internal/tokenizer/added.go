package tokenizer

import (
	"encoding/json"
	"fmt"
)

// readAdded gives the tokens their ids as the reference does: by the model's
// vocabulary, else the next one free. The id in the file is not asked.
func (t *Tokenizer) readAdded(data []byte) error {
	a := &added{ids: map[string]int32{}, byID: map[int32]addedToken{}, shown: map[int32]string{}, special: map[string]bool{}}
	t.added = a
	var list []addedToken
	if len(data) > 0 {
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
	}
	v := t.model.vocab()
	next := int32(v.size)
	for _, k := range list {
		if k.Content == "" {
			continue
		}
		id, ok := a.ids[k.Content]
		if !ok {
			id, ok = v.ids[k.Content]
		}
		if !ok {
			id = next
			next++
		}
		a.ids[k.Content], a.byID[id] = id, k
		if k.Special {
			a.special[k.Content] = true
		}
	}
	return t.buildAdded()
}

func (t *Tokenizer) buildAdded() error {
	a, e := t.added, t.encoder()
	defer t.release(e)
	a.raw, a.normal = newTokenSet(t.uni), newTokenSet(t.uni)
	for id, k := range a.byID {
		set, text := a.raw, k.Content
		if k.Normalized {
			set = a.normal
			e.arena = e.arena[:0]
			if text = string(e.normalize(wholePiece([]byte(k.Content))).b); text != k.Content {
				a.shown[id] = text
			}
		}
		if err := set.add(text, id, k); err != nil {
			return err
		}
	}
	return nil
}

// token returns what an added token decodes from.
func (a *added) token(id int32) (string, bool) {
	if s, ok := a.shown[id]; ok {
		return s, true
	}
	k, ok := a.byID[id]
	return k.Content, ok
}
