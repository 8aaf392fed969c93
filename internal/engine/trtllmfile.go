package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Keys of the configuration file that are more than one parameter's value.
const (
	graphSection = "cuda_graph_config"
	graphMaxKey  = "cuda_graph_config.max_batch_size"
	graphSizes   = "cuda_graph_config.batch_sizes"
	graphPadding = "cuda_graph_config.enable_padding"
	specSection  = "speculative_config"
	kvFraction   = "kv_cache_config.free_gpu_memory_fraction"
	kvMaxTokens  = "kv_cache_config.max_tokens"
	kvMaxBytes   = "kv_cache_config.max_gpu_total_bytes"
	overlapKey   = "disable_overlap_scheduler"
	kvDtypeKey   = "kv_cache_config.dtype"
	policyKey    = "scheduler_config.capacity_scheduler_policy"
	chunkPolicy  = "scheduler_config.context_chunking_policy"
)

// trtllmPut sets a parameter in the configuration file. A largest graph comes with
// padding, without which batches between the sizes run without a graph.
func trtllmPut(tree map[string]any, p *Param, value string) error {
	switch p.Name {
	case Speculative:
		return trtllmPutSpec(tree, value)
	case Eager:
		if value == "true" {
			tree[graphSection] = nil
		}
		return nil
	case Overlap:
		put(tree, p.Key, value == "false")
		return nil
	case GraphMax:
		if _, off := tree[graphSection]; off && tree[graphSection] == nil {
			return nil
		}
		if _, said := at(tree, graphPadding); !said {
			put(tree, graphPadding, true)
		}
	}
	if spelled, ok := p.Spell[value]; ok {
		value = spelled
	}
	v, err := p.typed(value)
	if err != nil {
		return err
	}
	put(tree, p.Key, v)
	return nil
}

// typed is a parameter's text as a value of its kind.
func (p *Param) typed(value string) (any, error) {
	if err := p.readable(value); err != nil {
		return nil, err
	}
	switch p.Kind {
	case Int:
		return strconv.Atoi(value)
	case Float:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, err
		}
		return normal(f)
	case Bool:
		return value == "true", nil
	}
	return value, nil
}

// trtllmTake moves what is a parameter's out of a configuration file's content.
func trtllmTake(c *Command, e *Engine, tree map[string]any) error {
	trtllmTakeGraphs(c, tree)
	if err := trtllmTakeSpec(c, e, tree); err != nil {
		return err
	}
	for i := range e.Params {
		p := &e.Params[i]
		if p.Key == "" || p.Name == Speculative || p.Name == Eager || p.Name == GraphMax {
			continue
		}
		value, ok := cut(tree, p.Key)
		if !ok {
			continue
		}
		if value == nil { // as if it were not there, but for a flag that it overrides
			delete(c.Params, p.Name)
			continue
		}
		text := scalarText(value)
		if p.Kind == Bool && !p.Ranks {
			is, _ := truth(value)
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
	size, ok := cut(tree, graphMaxKey)
	if n, _ := number(size); !ok || n == 0 { // 0 leaves it to the engine
		return
	}
	c.Params[GraphMax] = scalarText(size)
	padding, said := at(tree, graphPadding)
	if pads, _ := truth(padding); pads {
		cut(tree, graphPadding)
		cut(c.File, graphPadding)
	} else if !said {
		put(tree, graphPadding, false)
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
		put(tree, specSection+".decoding_type", m.theirs)
		put(tree, specSection+"."+m.tokens, s.k)
		if s.draft != "" {
			put(tree, specSection+"."+draftKeys[0], s.draft)
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
	kind, _ := at(tree, specSection+".decoding_type")
	i := slices.IndexFunc(trtllmMethods, func(m struct{ ours, theirs, tokens string }) bool { return m.theirs == kind })
	if i < 0 {
		return nil
	}
	m := trtllmMethods[i]
	k, ok := cut(tree, specSection+"."+m.tokens)
	if !ok {
		k, ok = cut(tree, specSection+".max_draft_len") // of MTP, in newer versions
	}
	if !ok && m.ours == "mtp" {
		k, ok = 1, true
	}
	n, _ := number(k)
	if !ok || n < 1 {
		return keyRejection(e, specSection, fmt.Sprintf("Value error, max_draft_len must be > 0 for %s", m.theirs))
	}
	cut(tree, specSection+".decoding_type")
	s := spec{method: m.ours, k: int(n)}
	for _, key := range draftKeys {
		if v, ok := cut(tree, specSection+"."+key); ok && v != nil {
			s.draft = scalarText(v)
		}
	}
	c.Params[Speculative] = s.String()
	return nil
}

// models reports whether Resolve heeds a key that File keeps.
func (c Command) models(key string) bool {
	padding, _ := at(c.File, graphPadding)
	pads, _ := truth(padding)
	switch key {
	case graphPadding, kvMaxTokens, kvMaxBytes:
		return true
	case graphSizes:
		return pads
	case chunkPolicy:
		v, _ := at(c.File, key)
		return v == "FIRST_COME_FIRST_SERVED"
	}
	return false
}

// fileNumber is a number of the configuration file, 0 where none is given.
func (r *resolver) fileNumber(key string) float64 {
	v, _ := at(r.cmd.File, key)
	f, _ := number(v)
	return f
}

// graphs resolves the sizes that CUDA graphs are captured for. With padding a batch
// runs as the next size: 1, 2, 4, multiples of 8 up to 128, then of 64, and the largest.
func (r *resolver) graphs() {
	c := r.cfg
	if r.bool(Eager, false) {
		return
	}
	c.GraphMax = r.int(GraphMax, 128)
	var sizes []int
	if v, ok := at(r.cmd.File, graphSizes); ok && v != nil {
		for _, x := range v.([]any) {
			n, ok := number(x)
			if !ok || n < 1 {
				r.outside(graphSizes, "of at least 1", flow(x))
				return
			}
			sizes = append(sizes, int(n))
		}
	}
	if len(sizes) > 0 {
		slices.Sort(sizes)
		largest := sizes[len(sizes)-1]
		if r.text(GraphMax) != "" && c.GraphMax != largest {
			r.fail(keyRejection(r.engine, graphSection, fmt.Sprintf("Value error, max_batch_size %d is not the largest of batch_sizes, %d", c.GraphMax, largest)))
			return
		}
		c.GraphMax = largest
	}
	padding, said := at(r.cmd.File, graphPadding)
	pads, _ := truth(padding)
	if !pads && (said || r.text(GraphMax) == "") {
		return
	}
	if c.Graphs = sizes; len(sizes) == 0 {
		c.Graphs = paddedSizes(c.GraphMax)
	}
}

// paddedSizes are the sizes captured with padding up to a largest one.
func paddedSizes(largest int) []int {
	var sizes []int
	for n := 1; n < largest; {
		sizes = append(sizes, n)
		switch {
		case n < 4:
			n *= 2
		case n < 128:
			n = n/8*8 + 8
		default:
			n += 64
		}
	}
	return append(sizes, largest)
}

// capKV lowers the KV cache to what the configuration file allows in tokens or bytes.
func (r *resolver) capKV() {
	c := r.cfg
	pool := float64(poolTRTLLM(c))
	limit := pool
	if n := r.fileNumber(kvMaxTokens); n > 0 {
		l := c.Layout()
		limit = min(limit, float64(l.Page)*float64(l.Groups())*math.Ceil(n/float64(l.Block)))
	}
	if n := r.fileNumber(kvMaxBytes); n > 0 {
		limit = min(limit, n)
	}
	if limit < pool {
		c.KVSpace = int64(limit)
	}
}

// uppercase maps names to the engine's spelling in capitals.
func uppercase(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = strings.ToUpper(n)
	}
	return out
}
