package engine

import (
	"fmt"
	"slices"
	"strconv"

	"perflab/internal/engine/nested"
)

// trtllmPut sets a parameter in the configuration file. A largest graph comes with
// padding, without which batches between the sizes run without a graph.
func trtllmPut(c Command, tree map[string]any, p *Param, value string) error {
	switch p.Name {
	case HostCache:
		bytes, err := hostBytes(c, value)
		nested.Put(tree, p.Key, bytes)
		return err
	case Speculative:
		return trtllmPutSpec(tree, value)
	case Eager:
		if value == "true" {
			tree[graphSection] = nil
		}
		return nil
	case Overlap:
		nested.Put(tree, p.Key, value == "false")
		return nil
	case GraphMax:
		if _, off := tree[graphSection]; off && tree[graphSection] == nil {
			return nil
		}
		if _, said := nested.At(tree, graphPadding); !said {
			nested.Put(tree, graphPadding, true)
		}
	}
	if spelled, ok := p.Spell[value]; ok {
		value = spelled
	}
	v, err := p.typed(value)
	if err != nil {
		return err
	}
	nested.Put(tree, p.Key, v)
	return nil
}

// trtllmTake moves what is a parameter's out of a configuration file's content, but the size of
// the host cache: the file's is of a rank, and how many there are may not be known yet.
func trtllmTake(c *Command, e *Engine, tree map[string]any) error {
	trtllmTakeGraphs(c, tree)
	if err := trtllmTakeSpec(c, e, tree); err != nil {
		return err
	}
	for i := range e.Params {
		p := &e.Params[i]
		if p.Key == "" || p.Name == HostCache || p.Name == Speculative || p.Name == Eager || p.Name == GraphMax {
			continue
		}
		value, ok := nested.Cut(tree, p.Key)
		if !ok {
			continue
		}
		if value == nil { // as if it were not there, but for a flag that it overrides
			delete(c.Params, p.Name)
			continue
		}
		text := nested.Text(value)
		if p.Kind == Bool && !p.Ranks {
			is, _ := nested.Truth(value)
			text = strconv.FormatBool(is != (p.Name == Overlap))
		}
		for canonical, spelled := range p.Spell {
			if spelled == text {
				text = canonical
			}
		}
		c.Params[p.Name] = text
	}
	return nil
}

// trtllmTakeGraphs reads the section of CUDA graphs. Padding is what the parameter
// implies, so that only its absence is kept beside it.
func trtllmTakeGraphs(c *Command, tree map[string]any) {
	value, given := tree[graphSection]
	if !given {
		return
	}
	if value == nil {
		c.Params[Eager] = "true"
		delete(c.Params, GraphMax)
		delete(c.File, graphSection)
		delete(tree, graphSection)
		return
	}
	delete(c.Params, Eager)
	size, ok := nested.Cut(tree, graphMaxKey)
	if n, _ := nested.Number(size); !ok || n == 0 { // 0 leaves it to the engine
		return
	}
	c.Params[GraphMax] = nested.Text(size)
	padding, said := nested.At(tree, graphPadding)
	if pads, _ := nested.Truth(padding); pads {
		nested.Cut(tree, graphPadding)
		nested.Cut(c.File, graphPadding)
	} else if !said {
		nested.Put(tree, graphPadding, false)
	}
}

// trtllmMethods are our speculation methods that the file knows, with its words.
var trtllmMethods = []struct{ ours, theirs, tokens string }{
	{"mtp", "MTP", "num_nextn_predict_layers"},
	{"eagle3", "Eagle", "max_draft_len"}, // its PyTorch backend runs Eagle as Eagle3
	{"eagle3", "Eagle3", "max_draft_len"},
	{"ngram", "NGram", "max_draft_len"},
	{"draft_model", "Draft_Target", "max_draft_len"},
	{"draft_model", "DraftTarget", "max_draft_len"},
}

// draftKeys are the names of the draft model; the first is read by all versions.
var draftKeys = []string{"speculative_model_dir", "speculative_model"}

// trtllmPutSpec spells METHOD:K[:DRAFT] as the file's section.
func trtllmPutSpec(tree map[string]any, value string) error {
	s, err := parseSpec(value)
	if err != nil {
		return err
	}
	for _, m := range trtllmMethods {
		if m.ours != s.method || s.raw != "" || s.auto || s.topK > 0 {
			continue
		}
		nested.Put(tree, specSection+".decoding_type", m.theirs)
		nested.Put(tree, specSection+"."+m.tokens, s.k)
		if s.draft != "" {
			nested.Put(tree, specSection+"."+draftKeys[0], s.draft)
		}
		return nil
	}
	return &Rejection{Rule: "speculative", Reason: fmt.Sprintf("TensorRT-LLM has no speculation %s; it has mtp, eagle3, ngram and draft_model, each with a number of tokens", s),
		Log: fmt.Sprintf("ValueError: Invalid decoding type: %s", s.method)}
}

// trtllmTakeSpec reads the section of speculation. A method that has no name here
// stays in the file as it is.
func trtllmTakeSpec(c *Command, e *Engine, tree map[string]any) error {
	value, given := tree[specSection]
	if !given {
		return nil
	}
	delete(c.Params, Speculative)
	delete(c.File, specSection)
	if value == nil {
		delete(tree, specSection)
		return nil
	}
	kind, _ := nested.At(tree, specSection+".decoding_type")
	i := slices.IndexFunc(trtllmMethods, func(m struct{ ours, theirs, tokens string }) bool { return m.theirs == kind })
	if i < 0 {
		return nil
	}
	m := trtllmMethods[i]
	k, ok := nested.Cut(tree, specSection+"."+m.tokens)
	if !ok {
		k, ok = nested.Cut(tree, specSection+".max_draft_len") // of MTP, in newer versions
	}
	if !ok && m.ours == "mtp" {
		k, ok = 1, true
	}
	n, _ := nested.Number(k)
	if !ok || n < 1 {
		return keyRejection(e, specSection, fmt.Sprintf("Value error, max_draft_len must be > 0 for %s", m.theirs))
	}
	nested.Cut(tree, specSection+".decoding_type")
	s := spec{method: m.ours, k: int(n)}
	for _, key := range draftKeys {
		if v, ok := nested.Cut(tree, specSection+"."+key); ok && v != nil {
			s.draft = nested.Text(v)
		}
	}
	c.Params[Speculative] = s.String()
	return nil
}
