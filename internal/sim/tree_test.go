package sim

import (
	"math"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// TestTree: a tree of guesses is accepted more often than a chain, the wider the more, and
// verifying it costs its tokens.
func TestTree(t *testing.T) {
	cfg := testConfig()
	cfg.Engine, cfg.Spec, cfg.SpecTokens = "sglang", "eagle3", 4
	accept := func(width, verify int) float64 {
		c := cfg
		c.SpecTree, c.SpecVerify = width, verify
		return acceptance(constantsFor(nil, c), c)
	}
	chain := Default().Value(SubjectOf(cfg), "accept_eagle3")
	if got := accept(1, 0); got != chain {
		t.Errorf("a chain is accepted with %v, want %v", got, chain)
	}
	// 4 candidates a step are worth 1 + 0.4 ln 4 guesses.
	if got, want := accept(4, 32), 1-math.Pow(1-chain, 1+0.4*math.Log(4)); math.Abs(got-want) > 1e-12 {
		t.Errorf("a tree is accepted with %v, want %v", got, want)
	}
	if accept(8, 33) <= accept(4, 33) || accept(8, 9) >= accept(8, 33) || accept(8, 5) != chain {
		t.Errorf("%v, %v, %v: wider trees are accepted more, as far as they are verified", accept(4, 33), accept(8, 33), accept(8, 9))
	}
	length := func(verify int) (tokens int) {
		c := cfg
		c.SpecTree, c.SpecVerify = 4, verify
		core := mustCore(t, c, Options{KVTokens: 100_000})
		submit(t, core, [2]int{100, 30}, [2]int{100, 30})
		for _, ok := core.Step(); ok && !core.work[0].s.decoding(); _, ok = core.Step() {
		}
		b := core.batch()
		return b.tokens
	}
	if a, b := length(8), length(16); a != 16 || b != 32 {
		t.Errorf("two sequences verify %d tokens, and %d of larger trees, want 16 and 32", a, b)
	}
}

// TestAcceptance: guesses of a model's own layers have a chance of their own.
func TestAcceptance(t *testing.T) {
	own := arch.Model{HasMTP: true}
	for _, w := range []struct {
		spec  string
		model arch.Model
		want  string
	}{
		{"eagle3", own, "accept_eagle3"}, {"mtp", own, "accept_mtp"}, {"qwen3_next_mtp", own, "accept_mtp"},
		{"eagle", own, "accept_mtp"}, {"eagle", arch.Model{}, "accept"}, {"ngram", own, "accept"}, {"draft_model", arch.Model{}, "accept"},
	} {
		if got := Acceptance(engine.Config{Spec: w.spec, Model: w.model}); got != w.want {
			t.Errorf("%s of a model with layers for it %v: %s, want %s", w.spec, w.model.HasMTP, got, w.want)
		}
	}
}

// TestSinks: attention with sinks is slower where no FlashAttention has it.
func TestSinks(t *testing.T) {
	flash := func(sm int, sinks bool) float64 {
		cfg := testConfig()
		cfg.Model.Sinks, cfg.GPU.SM = sinks, sm
		return newStepModel(cfg, constantsFor(nil, cfg)).flash
	}
	for sm, slower := range map[int]bool{80: true, 90: false, 100: false, 121: true} {
		if got := flash(sm, true) > 1.5*flash(sm, false); got != slower {
			t.Errorf("sm %d: slower with sinks: %v, want %v", sm, got, slower)
		}
	}
}

// TestSites: slower devices and hosts make their parts of a step longer, and overlapping
// steps hide a share of the host's.
func TestSites(t *testing.T) {
	spent := func(overlap bool, values map[string]float64) (times Times) {
		k, err := Priors().With(Set{Values: values})
		if err != nil {
			t.Fatal(err)
		}
		cfg := testConfig()
		cfg.Overlap = overlap
		var b batch
		for range 8 {
			b.decode(500, 1, 0)
		}
		newStepModel(cfg, constantsFor(k, cfg)).duration(&b, &times)
		return times
	}
	like := func(a, b float64) bool { return math.Abs(a/b-1) < 1e-5 }
	base := spent(false, nil)
	if slow := spent(false, map[string]float64{"site_engine": 2}); !like(float64(slow.Host), 2*float64(base.Host)) || !like(float64(slow.Weights), 2*float64(base.Weights)) || !like(float64(slow.KV), 2*float64(base.KV)) {
		t.Errorf("an engine of half the pace: %+v, was %+v", slow, base)
	}
	slow := spent(false, map[string]float64{"site_device": 0.5, "site_host": 2})
	family := spent(false, map[string]float64{"rate_family": 0.5})
	for _, x := range []Times{slow, family} {
		if !like(float64(x.Weights+x.Arithmetic), 2*float64(base.Weights+base.Arithmetic)) || !like(float64(x.KV), 2*float64(base.KV)) {
			t.Errorf("half the rate: %+v, was %+v", x, base)
		}
	}
	if !like(float64(slow.Host), 2*float64(base.Host)) || !like(float64(family.Host), float64(base.Host)) {
		t.Errorf("hosts: %v and %v, was %v", slow.Host, family.Host, base.Host)
	}
	if hidden := spent(true, map[string]float64{"overlap": 0.75}); !like(float64(hidden.Host), 0.25*float64(base.Host)) {
		t.Errorf("overlap leaves %v of %v", hidden.Host, base.Host)
	}
}

// TestFamilies: sets of a family speak of its models alone.
func TestFamilies(t *testing.T) {
	k, err := Priors().With(Set{Engine: "vllm", Family: "qwen3", Values: map[string]float64{"f_family": 3}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"Qwen/Qwen3-8B": 3, "Qwen/Qwen3-30B-A3B": 3, "Qwen/Qwen3.5-9B": 1, "openai/gpt-oss-20b": 0.25} {
		cfg := engine.Config{Engine: "vllm", Model: arch.Model{Name: name}}
		if got := k.Value(SubjectOf(cfg), "f_family"); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
