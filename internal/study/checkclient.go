package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/openai"
	"perflab/internal/workload"
)

// client checks how a study's load is sent: the API and the cache policy, and
// what of them the runtime has.
func (c *checker) client() {
	b, kind := c.s.Bench, c.s.Runtime.Kind
	known := slices.Contains(append(openai.Backends(), openai.BackendVLLM), b.Backend)
	switch {
	case !known:
		c.add("bench.backend", "backend %q is not known: use %s or %s", b.Backend, strings.Join(openai.Backends(), ", "), openai.BackendVLLM)
	case (kind == Simulated || kind == Predicted) && !slices.Contains([]string{openai.BackendChat, openai.BackendCompletions, openai.BackendVLLM}, b.Backend):
		c.add("bench.backend", "backend %s does not apply to runtime kind %s: the simulated engine has %s and %s", b.Backend, kind, openai.BackendChat, openai.BackendCompletions)
	}
	if err := (bench.Spec{Cache: b.Cache}).CheckCache(); err != nil {
		c.addUnder("bench", "", err)
		return
	}
	switch {
	case kind == Predicted && b.Cache != "" && b.Cache != bench.CacheUnique:
		c.add("bench.cache", "cache %s does not apply to runtime kind predicted: every prediction begins with an empty cache", b.Cache)
	case kind == Simulated && b.Cache == bench.CacheReset:
		c.add("bench.cache", "cache reset does not apply to runtime kind simulated: the simulated engine offers no way to empty its cache")
	}
}

// fits checks a workload of a study against its runtime and client.
func (c *checker) fits(at, name string, w *workload.Workload) {
	if c.s.Bench.Cache == bench.CacheWarm && w.Len() == 0 {
		c.add(at, "workload %s: cache warm needs to know the prompts beforehand: give num_prompts", name)
	}
	if err := cmp.Or(bench.ChatOnly(w, c.s.Bench.Backend), bench.ScenarioFits(w.Spec().Scenario, c.s.Bench.Backend)); err != nil {
		c.addUnder(at, "workload "+name+": ", err)
		return
	}
	if err := c.s.accepts(w); err != nil {
		c.add(at, "workload %s: %v", name, err)
	}
}

// accepts asks the client, and for a prediction the simulator's replay, whether
// they have a place for what the workload sends.
func (f *File) accepts(w *workload.Workload) error {
	if f.Runtime.Kind == Predicted {
		if err := bench.Replayable(w); err != nil {
			return fmt.Errorf("%w (runtime kind %s)", err, Predicted)
		}
	}
	return bench.Accepts(f.Bench.Backend, w)
}
