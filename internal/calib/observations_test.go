package calib

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/result"
)

//go:embed testdata/published.json
var publishedJSON []byte

// publishedObservations are the distinct blocks of four published studies.
func publishedObservations(t testing.TB) []Observation {
	t.Helper()
	obs, err := ReadObservations(publishedJSON)
	if err != nil {
		t.Fatal(err)
	}
	return obs
}

//go:embed testdata/more.json
var moreJSON []byte

//go:embed testdata/own.json
var ownJSON []byte

// allObservations are those and the blocks of nine further studies, resolved.
func allObservations(t testing.TB) []Observation {
	t.Helper()
	obs, err := ReadObservations(moreJSON)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ReadObservations(ownJSON)
	if err != nil {
		t.Fatal(err)
	}
	obs = slices.Concat(publishedObservations(t), obs, own)
	for i := range obs {
		if err := obs[i].Resolve(); err != nil {
			t.Fatalf("%s: %v", obs[i].ID, err)
		}
	}
	return obs
}

// derived are figures that no block prints.
var derived = []string{"e2el_per_output_token_ms"}

func TestPublishedObservationsResolve(t *testing.T) {
	obs := publishedObservations(t)
	if len(obs) != 70 {
		t.Errorf("%d observations, want the 70 distinct blocks", len(obs))
	}
	for _, o := range obs {
		if err := o.Resolve(); err != nil {
			t.Errorf("%s: %v", o.ID, err)
		}
		for name := range o.Figures {
			if _, err := result.Lookup(name); err != nil && !slices.Contains(derived, name) {
				t.Errorf("%s: %v", o.ID, err)
			}
		}
	}
}

// block is one published block as it was transcribed.
type block struct {
	ID      string
	Doc     string
	Figures []struct{ Label, Raw string }
}

// labels are the blocks' labels by metric, with the factor to its unit.
var labels = func() map[string]string {
	m := map[string]string{"duration": "Benchmark duration (s)", "request_throughput": "Request throughput (req/s)",
		"output_throughput": "Output token throughput (tok/s)", "total_token_throughput": "Total token throughput (tok/s)"}
	for stat, label := range map[string]string{"mean": "Mean", "median": "Median", "p95": "P95", "p99": "P99"} {
		m[stat+"_ttft_ms"], m[stat+"_tpot_ms"], m[stat+"_itl_ms"] = label+" TTFT (ms)", label+" TPOT (ms)", label+" ITL (ms)"
		m[stat+"_e2el_ms"] = label + " Latency(s)"
	}
	return m
}()

// figure is what a block prints under a metric's label, in the metric's unit.
func (b *block) figure(name string) (float64, bool) {
	for _, f := range b.Figures {
		if strings.EqualFold(f.Label, labels[name]) {
			v, err := strconv.ParseFloat(f.Raw, 64)
			if strings.HasSuffix(f.Label, "Latency(s)") {
				v *= 1000
			}
			return v, err == nil
		}
	}
	return 0, false
}

func (b *block) count(label string) float64 {
	for _, f := range b.Figures {
		if f.Label == label {
			v, _ := strconv.ParseFloat(f.Raw, 64)
			return v
		}
	}
	return math.NaN()
}

func (b *block) text() string {
	return fmt.Sprint(b.Figures)
}

// shared returns the directory of reference facts, and skips the test where it
// is not there.
func shared(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PERFLAB_SHARED"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "shared", "reference", "seed_blocks.json")); err == nil {
			return filepath.Join(dir, "shared")
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		t.Skip("the published studies are not here: set PERFLAB_SHARED to read them")
	}
}

func readBlocks(t *testing.T) map[string]*block {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared(t), "reference", "seed_blocks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Blocks []*block }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	blocks := map[string]*block{}
	for _, b := range file.Blocks {
		blocks[b.ID] = b
	}
	return blocks
}

// Each distinct block is there once, and each figure is the printed one, or
// follows from printed ones.
func TestPublishedObservationsAreThePrinted(t *testing.T) {
	blocks := readBlocks(t)
	distinct := map[string]bool{}
	for _, b := range blocks {
		distinct[b.text()] = true
	}
	obs := publishedObservations(t)
	for _, o := range obs {
		b := blocks[o.ID]
		if b == nil {
			t.Errorf("%s: no such block", o.ID)
			continue
		}
		if !distinct[b.text()] {
			t.Errorf("%s repeats another block", o.ID)
		}
		delete(distinct, b.text())
		if o.Study != b.Doc || float64(o.Load.Requests) != b.count("Successful requests") {
			t.Errorf("%s: study %s with %d requests, printed %s with %v", o.ID, o.Study, o.Load.Requests, b.Doc, b.count("Successful requests"))
		}
		out := b.count("Total generated tokens") / b.count("Successful requests")
		for name, v := range o.Figures {
			want, ok := b.figure(name)
			switch {
			case ok:
			case name == "e2el_per_output_token_ms":
				latency, _ := b.figure(MeanE2E)
				want = latency / out
			case name == MeanE2E && o.Load.Output.Sigma == 0 && out == math.Trunc(out):
				ttft, _ := b.figure(MeanTTFT)
				tpot, _ := b.figure(MeanTPOT)
				want = ttft + tpot*(out-1)
			}
			if math.Abs(v-want) > 1e-9*want+0.006 {
				t.Errorf("%s: %s is %v, printed %v", o.ID, name, v, want)
			}
		}
		sum := func(lengths []int) (n float64) {
			for _, l := range lengths {
				n += float64(l)
			}
			return n
		}
		for what, p := range map[string][2]float64{
			"input":  {sum(o.Load.Input.draw(o.Load.Requests, 1, "input")), b.count("Total input tokens")},
			"output": {sum(o.Load.Output.draw(o.Load.Requests, 1, "output")), b.count("Total generated tokens")},
		} {
			if math.Abs(p[0]/p[1]-1) > 0.01 {
				t.Errorf("%s: %s of %v tokens, printed %v", o.ID, what, p[0], p[1])
			}
		}
	}
	if len(distinct) > 0 {
		t.Errorf("%d distinct blocks are missing", len(distinct))
	}
}

func TestReadObservations(t *testing.T) {
	good := `[{"id": "a", "study": "s", "workload": "w", "command": "vllm serve Qwen/Qwen3-8B", "gpu": "h100-sxm", "gpus": 1,
  "load": {"requests": 10, "input": {"mean": 100}, "output": {"mean": 10}}, "figures": {"total_token_throughput": 100}}]`
	if obs, err := ReadObservations([]byte(good)); err != nil || len(obs) != 1 {
		t.Fatalf("%v, %v", obs, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"id": "a"`, `"id": ""`, "has no id"},
		{`"study": "s", `, ``, "study is missing"},
		{`"workload": "w"`, `"work": "w"`, `json: unknown field "work"`},
		{`"gpus": 1`, `"gpus": 0`, "gpus is 0"},
		{`"requests": 10`, `"requests": 0`, "requests is 0"},
		{`"requests": 10`, `"requests": 10, "rate": 4`, "write constant or poisson"},
		{`"requests": 10`, `"requests": 10, "arrival": "poisson"`, "without a rate"},
		{`"requests": 10`, `"requests": 3000000`, "3000000 requests have 3e+07 output tokens"},
		{`"requests": 10`, `"requests": 9000000000000000000`, "output tokens"},
		{`"mean": 10}`, `"mean": 1e15}`, "10 requests have 1e+16 output tokens"},
		{`"requests": 10, "input": {"mean": 100}`, `"requests": 10, "cached": 2, "input": {"mean": 4e15}`, "2 cached prompts have 8e+15 tokens"},
		{`"requests": 10`, `"requests": 10, "rate": 1e-9, "arrival": "poisson"`, "take longer than a year"},
		{`"mean": 10}`, `"mean": 10, "sigma": 1e10}`, "sigma is 1e+10"},
		{`"mean": 10}`, `"mean": 0}`, "load: output: mean is 0"},
		{`"mean": 10}`, `"mean": 10, "max": 5}`, "max is 5"},
		{`: 100}}]`, `: 0}}]`, "leave out what was not measured"},
		{`: 100}}]`, `: "fast"}}]`, "line 2: json: cannot unmarshal"},
		{`}}]`, `}}`, "line 2: unexpected EOF"},
		{`}}]`, `}}] []`, "something follows"},
		{`[{`, `{`, "line 1: json: cannot unmarshal"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if _, err := ReadObservations([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.new, c.old, err, c.want)
		}
	}
	twice := strings.TrimSuffix(good, "]") + "," + strings.TrimPrefix(good, "[")
	if _, err := ReadObservations([]byte(twice)); err == nil || !strings.Contains(err.Error(), "stands twice") {
		t.Errorf("one id twice: %v", err)
	}
}

func TestResolveObservation(t *testing.T) {
	ok := Observation{Command: "vllm serve Qwen/Qwen3-8B", GPU: "h100-sxm", GPUs: 1}
	for _, c := range []struct {
		change func(*Observation)
		want   string
	}{
		{func(*Observation) {}, ""},
		{func(o *Observation) { o.Command = "vllm serve 'Qwen/Qwen3-8B" }, "not closed"},
		{func(o *Observation) { o.Command = "vllm serve Qwen/Qwen3-8B --max-modl-len 1" }, "unrecognized arguments"},
		{func(o *Observation) { o.Command = "vllm serve Nobody/Knows-1B" }, "unknown model"},
		{func(o *Observation) { o.Replicas = -1 }, "replicas is -1"},
		{func(o *Observation) { o.Replicas = 2e9 }, "replicas is 2000000000: 10000 are the limit"},
		{func(o *Observation) { o.GPU = "abacus" }, "unknown accelerator"},
		{func(o *Observation) { o.Command, o.GPUs = o.Command+" -tp 2", 2 }, ""},
		{func(o *Observation) { o.Command = "trtllm-serve Qwen/Qwen3-8B --config f.yaml" }, "f.yaml, whose content is not recorded"},
		{func(o *Observation) {
			o.Command = "cat > trtllm.yaml <<'EOF'\nkv_cache_config:\n  tokens_per_block: 64\nEOF\ntrtllm-serve Qwen/Qwen3-8B --extra_llm_api_options trtllm.yaml"
		}, ""},
	} {
		o := ok
		c.change(&o)
		err := o.Resolve()
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s on %s: %v, want %q", o.Command, o.GPU, err, c.want)
		case c.want == "" && (err != nil || o.Config.Model.Name == ""):
			t.Errorf("%s: resolved to %q, %v", o.Command, o.Config.Model.Name, err)
		case strings.Contains(o.Command, "tokens_per_block") && o.Config.Block != 64:
			t.Errorf("%s: blocks of %d", o.Command, o.Config.Block)
		}
	}
}
