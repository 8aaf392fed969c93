package candidate

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// words are what labels say of checkpoints: what of their names is not common to all.
// The one whose name is a part of all others needs no word.
func words(models []string) map[string]string {
	models = first(models[0], models)
	bare := func(m string) string {
		m = m[strings.LastIndexByte(strings.TrimRight(m, "/"), '/')+1:]
		if len(m) > 5 && strings.EqualFold(m[len(m)-5:], ".gguf") {
			m = m[:len(m)-5]
		}
		return m
	}
	out, taken := map[string]string{}, map[string]bool{}
	if len(models) == 1 {
		return map[string]string{models[0]: ""}
	}
	common := bare(models[0])
	for _, m := range models[1:] {
		for !strings.HasPrefix(bare(m), common) {
			common = common[:len(common)-1]
		}
	}
	whole := slices.ContainsFunc(models, func(m string) bool { return bare(m) == common })
	if cut := strings.LastIndexAny(common, "-."); !whole {
		common = common[:cut+1]
	}
	for _, m := range models {
		w := strings.Trim(strings.TrimPrefix(bare(m), common), "-_. ")
		if taken[w] {
			w = m
		}
		out[m], taken[w] = w, true
	}
	return out
}

// Label is what a configuration is made of, for a reader: "SGLang, FP8, tp 2 x 4 replicas,
// MTP". What it has of the baseline's further settings goes without saying. Candidates that
// the study names have the study's label.
func (f *rules) Label(c tune.Config) string {
	p := f.resolve(c)
	parts := []string{f.head(c)}
	get := func(name string) string {
		if p.cmd.Model != "" {
			return p.cmd.Params[name]
		}
		return c[name]
	}
	if q := get(engine.Quantization); q != "" {
		parts = append(parts, q+" on loading")
	}
	if l := f.layoutWords(p, get); l != "" {
		parts = append(parts, l)
	}
	if s := specWords(get(engine.Speculative)); s != "" {
		parts = append(parts, s)
	}
	if kv := get(engine.KVDtype); kvFormat(kv) != "" {
		parts = append(parts, "KV "+kv)
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !slices.Contains(structure, name) && (c[name] != f.base[name] || c[engineKey] != f.base[engineKey] && name != engine.MaxModelLen) {
			parts = append(parts, said(name, c[name]))
		}
	}
	if c[engineKey] == f.base[engineKey] {
		for _, name := range slices.Sorted(maps.Keys(f.base)) {
			if !slices.Contains(structure, name) && c[name] == "" {
				parts = append(parts, name+" by default")
			}
		}
	}
	return strings.Join(parts, ", ")
}

// head is engine and checkpoint.
func (f *rules) head(c tune.Config) string {
	title := c[engineKey]
	if e, err := engine.ByName(title); err == nil {
		title = e.Title
	}
	word, ok := f.words[c[modelKey]]
	if !ok {
		word = c[modelKey]
	}
	if word == "" {
		return title
	}
	return title + ", " + word
}

// layoutWords is "tp 4 with EP x 2 replicas", "" where there is no choice.
func (f *rules) layoutWords(p plan, get func(string) string) string {
	e, err := engine.ByName(p.cmd.Engine)
	if f.o.GPUs == 1 && p.cmd.World() == 1 || err != nil || !settable(e, engine.TP) {
		return ""
	}
	tp := get(engine.TP)
	if tp == "" {
		tp = "1"
	}
	out := []string{"tp", tp}
	for _, name := range []string{engine.PP, engine.DP} {
		if v := get(name); v != "" && v != "1" {
			out = append(out, name, v)
		}
	}
	var also []string
	if v := get(engine.AttentionDP); v != "" && v != "false" {
		also = append(also, "attention DP")
	}
	switch v := get(engine.ExpertParallel); v {
	case "", "false", "1":
	case "true":
		also = append(also, "EP")
	default:
		also = append(also, "EP "+v)
	}
	if len(also) > 0 {
		out = append(out, "with", strings.Join(also, " and "))
	}
	if pools, err := engine.ParsePools(get(engine.Disaggregation)); err == nil && pools.Split() {
		out = append(out, "as", pools.String(), "prefill:decode")
	}
	if n := f.o.GPUs / max(1, p.cmd.World()); n > 1 {
		out = append(out, "x", strconv.Itoa(n), "replicas")
	}
	return strings.Join(out, " ")
}

// said is a setting for a reader.
func said(name, value string) string {
	switch value {
	case "":
		return name + " by default"
	case "true":
		return name
	case "false":
		return "no " + name
	}
	if name == engine.Speculative {
		return "speculation " + value
	}
	return name + " " + value
}

// spec is a setting of speculation: METHOD:K[:DRAFT].
type spec struct {
	method string
	k      int // 0 where the engine chooses
	draft  string
}

// parseSpec reads a setting of a plain form: no tree, no JSON.
func parseSpec(value string) (spec, bool) {
	if value == "" || strings.HasPrefix(value, "{") {
		return spec{method: value}, value != ""
	}
	method, rest, _ := strings.Cut(value, ":")
	k, draft, _ := strings.Cut(rest, ":")
	s := spec{method: strings.ToLower(method), draft: draft}
	s.k, _ = strconv.Atoi(k)
	return s, true
}

// tokens is the setting with another number of guesses, "" where it has none to change.
func (s spec) tokens(k int) string {
	if s.k == 0 || strings.HasPrefix(s.method, "{") {
		return ""
	}
	out := s.method + ":" + strconv.Itoa(k)
	if s.draft != "" {
		out += ":" + s.draft
	}
	return out
}

func specWords(value string) string {
	s, ok := parseSpec(value)
	switch {
	case !ok:
		return ""
	case strings.HasPrefix(s.method, "{"):
		return "speculation " + value
	}
	out := strings.ToUpper(s.method)
	if s.k != 1 {
		_, rest, _ := strings.Cut(value, ":")
		k, _, _ := strings.Cut(rest, ":")
		out += " " + k
	}
	if s.draft != "" {
		out += " by " + s.draft
	}
	return out
}

func count(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// decimal prints a share with the three digits that engines tell apart.
func decimal(x float64) string {
	return strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64)
}
