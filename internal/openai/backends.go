package openai

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// dialects returns every API, each with the name that is preferred.
func dialects() []*dialect {
	return []*dialect{chat(), completions(), responses(), anthropic(), sglang(), embeddings(), pooling(), rerank(), score()}
}

// Backends returns the names of all backends, without aliases.
func Backends() []string {
	var names []string
	for _, d := range dialects() {
		names = append(names, d.name)
	}
	return names
}

// BackendOf returns the backend whose endpoints end as this one, and plain
// completions where none does.
func BackendOf(endpoint string) string {
	if d := owner(endpoint); d != nil {
		return d.name
	}
	return BackendCompletions
}

// owner returns the API that an endpoint is of by its end, chat before the
// completions that end alike; nil for none.
func owner(endpoint string) *dialect {
	all := dialects()
	if i := slices.IndexFunc(all, func(d *dialect) bool { return strings.HasSuffix(endpoint, d.suffix) }); i >= 0 {
		return all[i]
	}
	return nil
}

// dialect finds the backend's API and rejects an endpoint of another and
// parameters that it does not have.
func (cfg Config) dialect() (*dialect, error) {
	all := dialects()
	i := slices.IndexFunc(all, func(d *dialect) bool {
		return d.name == cfg.Backend || slices.Contains(d.aliases, cfg.Backend)
	})
	if i < 0 {
		return nil, fmt.Errorf("backend %q is not known: use %s", cfg.Backend, strings.Join(Backends(), ", "))
	}
	d := all[i]
	if of := owner(cfg.Endpoint); cfg.Endpoint != "" && (of == nil || of.name != d.name) {
		err := fmt.Errorf("backend %s needs an endpoint that ends in %s, not %s", cfg.Backend, d.suffix, cfg.Endpoint)
		if of != nil {
			err = fmt.Errorf("%w: use backend %s for that", err, of.name)
		}
		return nil, err
	}
	for _, f := range cfg.sampling() {
		if f.set && !d.samples(f.key) {
			return nil, fmt.Errorf("backend %s has no %s: leave it out", cfg.Backend, f.key)
		}
	}
	return d, cfg.Sampling.check()
}

// check names a sampling parameter that no server takes.
func (s Sampling) check() error {
	if k := s.TopK; k != nil && *k < -1 {
		return fmt.Errorf("top_k is %d: it must be a number of tokens, or 0 or -1 for all", *k)
	}
	for _, p := range []struct {
		name string
		v    *float64
		ok   func(v float64) bool
		what string
	}{
		{"temperature", s.Temperature, func(v float64) bool { return v >= 0 && v <= math.MaxFloat64 }, "a number from 0 on"},
		{"top_p", s.TopP, func(v float64) bool { return v > 0 && v <= 1 }, "above 0 and at most 1"},
		{"min_p", s.MinP, func(v float64) bool { return v >= 0 && v <= 1 }, "from 0 to 1"},
		{"frequency_penalty", s.FrequencyPenalty, func(v float64) bool { return v >= -2 && v <= 2 }, "from -2 to 2"},
		{"presence_penalty", s.PresencePenalty, func(v float64) bool { return v >= -2 && v <= 2 }, "from -2 to 2"},
		{"repetition_penalty", s.RepetitionPenalty, func(v float64) bool { return v > 0 && v <= math.MaxFloat64 }, "above 0"},
	} {
		if p.v != nil && !p.ok(*p.v) {
			return fmt.Errorf("%s is %g: it must be %s", p.name, *p.v, p.what)
		}
	}
	return nil
}

// Generates reports whether a backend's answers are made token by token, so
// that they have a TTFT and a TPOT.
func Generates(backend string) bool {
	return !slices.ContainsFunc(dialects(), func(d *dialect) bool {
		return d.pooled && (d.name == backend || slices.Contains(d.aliases, backend))
	})
}
