package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"perflab/internal/workload"
)

func newTemplate(cfg Config, api *dialect) (template, error) {
	extra := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(cfg.ExtraBody)) > 0 {
		var err error
		if extra, err = object(cfg.ExtraBody); err != nil {
			return template{}, fmt.Errorf("extra body %.60q is not a JSON object", cfg.ExtraBody)
		}
	}
	shared := []field{{"model", cfg.Model != "" && !api.noModel, cfg.Model}}
	for _, f := range api.fixed {
		f.set = f.key != "stream_options" || !oneAnswer(extra)
		shared = append(shared, f)
	}
	if api.group == "" {
		return compose(api, append(shared, cfg.sampling()...), extra)
	}
	// The extra body's object of that name is merged into the group, so that
	// one of its keys does not cost the request its limit.
	inner := map[string]json.RawMessage{}
	if o, err := object(extra[api.group]); err == nil {
		inner = o
		delete(extra, api.group)
	}
	group, err := compose(api, cfg.sampling(), inner)
	if err != nil {
		return template{}, err
	}
	t, err := compose(api, shared, extra)
	t.group = &group
	return t, err
}

// compose joins our fields and those of the extra body, which go first by
// right and last by place.
func compose(api *dialect, ours []field, extra map[string]json.RawMessage) (template, error) {
	t := template{write: api.write, model: cmp.Or(api.adapter, "model"), extra: map[string]bool{}}
	for key := range extra {
		t.extra[key] = true
	}
	for _, f := range ours {
		if !f.set || t.extra[f.key] {
			continue
		}
		b, err := json.Marshal(f.value)
		if err != nil {
			return template{}, fmt.Errorf("request field %s: %w", f.key, err)
		}
		t.parts = append(t.parts, part{f.key, b})
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if string(extra[key]) != "null" {
			t.parts = append(t.parts, part{key, extra[key]})
		}
	}
	w := writer{b: []byte{'{'}}
	for _, p := range t.parts {
		w.part(p)
	}
	t.head = w.b
	return t, nil
}

// build writes the body of one request into a buffer of its own: the transport
// may still read it after an answer came, so it is not reused. Of fields with
// one name the extra body's counts first, then the request's own, then ours.
func (t *template) build(r workload.Request) []byte {
	w := writer{t: t, b: make([]byte, 0, len(t.head)+size(&r)+128)}
	w.shared(&r)
	t.write(&w, &r)
	return append(w.b, '}')
}

// size is about how many bytes the request's own part takes.
func size(r *workload.Request) int {
	n := len(r.Prompt) + len(r.System) + len(r.Fields) + 8*len(r.IDs)
	for _, m := range r.History {
		n += len(m.Content) + 32
	}
	for _, s := range r.Images {
		n += len(s) + 64
	}
	for _, s := range r.Documents {
		n += len(s) + 8
	}
	return n + n/16
}
