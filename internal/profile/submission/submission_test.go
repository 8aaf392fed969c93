package submission

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"perflab/internal/bench"
	"perflab/internal/profile"
	"perflab/internal/profile/mlperf"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// checkerEnv names MLCommons' checker: the command to which the directory of a submission is added.
const checkerEnv = "PERFLAB_SUBMISSION_CHECKER"

// curve writes the directory of a curve as long as the rules want, of what a simulator would have answered.
func curve(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "curve")
	list, err := mlperf.Propose(256, 16)
	if err != nil {
		t.Fatal(err)
	}
	facts := bench.SeriesFacts{Schema: "perflab.series/1", Kind: bench.KindSweep, Curve: &mlperf.Curve{Profile: name, CMax: 256}}
	for _, k := range list {
		load := bench.Load{Axis: bench.AxisConcurrency, Value: float64(k)}
		facts.Points = append(facts.Points, bench.Point{Load: load, Dir: load.Name()})
		writeRun(t, filepath.Join(dir, load.Name()), name, k)
	}
	if err := rundir.WriteJSON(filepath.Join(dir, "sweep.json"), facts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeRun writes the run of a point: twelve passes of 30 requests, of which the first fill the server.
func writeRun(t *testing.T, dir, name string, concurrency int) {
	t.Helper()
	spec := bench.Spec{Model: "m", Rules: name, Workload: workload.Spec{Dataset: "jsonl", Path: "rows.jsonl", Seed: mlperf.SeedSets()[0].Sample, Pass: 30, MaxConcurrency: concurrency, Arrival: "inf"}}
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	h := result.Header{Schema: rundir.Schema, Version: "test", Simulated: true, Model: "m", Spec: b, Limit: concurrency, Closed: true, Cache: result.CacheUnique}
	w, err := rundir.Create(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	apart := mlperf.RulesOf(name).Load(concurrency) / 355
	for i := range 360 {
		sent := time.Duration(i) * apart
		step := time.Duration(10+concurrency/10+i%7)*time.Millisecond + min(time.Duration(i)*time.Millisecond/20, 5*time.Millisecond)
		c := result.Call{Index: i, Due: sent, Ready: sent, Sent: sent, Sim: true, WantIn: 100, Want: 8}
		for n := range 8 {
			c.Chunks = append(c.Chunks, result.Chunk{At: sent + 200*time.Millisecond + time.Duration(n)*step, Tokens: 1, Read: int32(n)})
		}
		c.Usage, c.End = &result.Usage{Prompt: 100, Completion: 8}, c.Chunks[7].At+time.Millisecond
		w.Add(&c)
	}
	if err := w.Finish(&result.Client{}, &result.Summary{}, nil); err != nil {
		t.Fatal(err)
	}
}

const described = `
organization: example
submission_id: example-1
division: Standardized
system: box
implementation: vllm
sources: sources
documents: documents
system_description: system.json
system_power: power.json
model: {name: gpt-oss-120b, precision: MXFP4, link: 'https://example.org/model'}
dataset: {id: aime25, name: AIME 2025, type: Performance, link: 'https://example.org/data'}
seed_set: A
target_cohort: 2026-10-C1
`

const system = `{"system_name": "Box", "shortened_system_name": "Box", "system_availability_status": "Available", "availability_url": "https://example.org/box",
 "system_size": "1 node", "system_node_ensemble_count": 1, "system_node_ensemble_total": 1, "tensor_parallel": 8, "data_parallel": 1,
 "node_types": [{"system_node_ensemble_id": 1, "number_of_nodes": 1, "host_processor_core_count": 96, "host_memory_configuration": "24 x 64 GB", "host_network_card_count": "1",
  "driver": "1", "filesystem": "ext4", "cooling": "air", "accelerator_info": [{"accelerator_model_name": "H100", "accelerators_per_node": 8}]}]}`

const power = `{"system_desc_id": "box", "cooling": "air", "scale_out": {"present": false}, "node_sets": [{"node_set_id": 1, "system_node_ensemble_id": 1, "nodes_provisioned": 1,
 "power_method": "published_system", "published_power": {"value_kw": 10.2, "source_type": "vendor_spec", "source": "https://example.org/box"}}]}`

// description writes what a submitter gives; more are further lines.
func description(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"submission.yaml": described + more, "system.json": system, "power.json": power, "sources/README.md": "How to build it.\n", "documents/software.md": "What runs.\n",
		"accuracy.json": `{"accuracy_scores": [{"dataset_name": "aime25", "score": {"exact_match": 84.0}, "unit_samples": 4395, "num_repeats": 1}]}`,
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "submission.yaml")
}

const accuracy = "accuracy: {16: accuracy.json, 22: accuracy.json, 55: accuracy.json, 256: accuracy.json}\n"

// written is the submission of a curve.
func written(t *testing.T) (at string, notes []string) {
	t.Helper()
	d, err := Read(description(t, accuracy))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(curve(t, profile.MLPerf))
	if err != nil {
		t.Fatal(err)
	}
	if at, notes, err = Write(t.TempDir(), d, c); err != nil {
		t.Fatal(err)
	}
	return at, notes
}

func TestWrite(t *testing.T) {
	at, notes := written(t)
	b, err := os.ReadFile(filepath.Join(at, "results/box/gpt-oss-120b/r256/point.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := yaml.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"concurrency": "256", "offline": "elected", "region": mlperf.High, "simulated": "true", "model_notes": simulated, "shared_src": "src/vllm", "client": "perflab test"} {
		if fmt.Sprint(p[key]) != want {
			t.Errorf("%s is %v, want %s", key, p[key], want)
		}
	}
	var s struct {
		Issued    int     `json:"n_samples_issued"`
		Completed int     `json:"n_samples_completed"`
		Duration  float64 `json:"duration_ns"`
		TPS       float64 `json:"system_tps"`
		Output    struct {
			Total float64 `json:"total"`
		} `json:"output_sequence_lengths"`
		Of string `json:"figures_of"`
	}
	if err := rundir.ReadJSON(filepath.Join(at, "results/box/gpt-oss-120b/r256/result_summary.json"), &s); err != nil {
		t.Fatal(err)
	}
	if s.Of != mlperf.FromSteady || s.Issued != s.Completed || s.Issued%30 != 0 || s.Duration < 1200e9 || s.TPS != s.Output.Total/(s.Duration/1e9) {
		t.Errorf("%+v", s)
	}
	for rule, want := range map[string]bool{mlperf.RuleSimulated: true, mlperf.RuleClient: true, mlperf.RuleAccuracy: false, mlperf.RuleSeed: false, mlperf.RuleDuration: false, mlperf.RuleQueries: false} {
		if got := slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, rule+":") }); got != want {
			t.Errorf("%s in the notes: %t, want %t: %q", rule, got, want, notes)
		}
	}
}

// MLCommons' own checker finds nothing wrong in the files of a curve.
func TestChecker(t *testing.T) {
	words := strings.Fields(os.Getenv(checkerEnv))
	if len(words) == 0 {
		t.Skipf("%s names no command: that of endpoints-submission-cli is \"endpoints-submission-cli check-submission\"", checkerEnv)
	}
	at, _ := written(t)
	out, err := exec.CommandContext(t.Context(), words[0], append(words[1:], at)...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s: %v", words[0], err)
	}
}

func TestRefused(t *testing.T) {
	if _, err := Open(curve(t, profile.MLPerfShort)); err == nil || !strings.Contains(err.Error(), "short form, which is no submission") {
		t.Errorf("the short form: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is no directory of a series") {
		t.Errorf("an empty directory: %v", err)
	}
	dir := curve(t, profile.MLPerf)
	if err := os.Remove(filepath.Join(dir, "concurrency-22", "calls.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a curve without the calls of a point was taken")
	}
}

func TestDescription(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{described, "", "cannot be read"},
		{"division: Standardized", "", "missing, which perflab cannot know: division ("},
		{"organization: example", "organisation: example", "organisation"},
		{"submission_id: example-1", "submission_id: ../1", "names a directory"},
		{"division: Standardized", "division: Closed", "use Standardized, Serviced or RDI"},
		{"system_power: power.json", "", "system_power"},
		{"name: gpt-oss-120b", "name: gpt-2", "the round's models are llama3_1-8b"},
		{"target_cohort: 2026-10-C1", "target_cohort: autumn", "write it as 2026-10-C1"},
		{"seed_set: A", "seed_set: Z", "perflab knows A"},
	} {
		_, err := Parse([]byte(strings.Replace(described, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.new, err, c.want)
		}
	}
	if _, err := Parse([]byte(strings.Replace(described, "division: Standardized\nsystem: box", "division: RDI\nsystem: box", 1))); err != nil {
		t.Errorf("RDI: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(described)
	f.Add("accuracy: {1: [}")
	f.Fuzz(func(_ *testing.T, text string) {
		if d, err := Parse([]byte(text)); err == nil && (d.Organization == "" || d.Division == "") {
			panic("an incomplete description was taken")
		}
	})
}
