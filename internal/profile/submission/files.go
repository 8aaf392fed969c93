package submission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"go.yaml.in/yaml/v4"

	"perflab/internal/profile/mlperf"
)

// pointFile is point.yaml of a point.
type pointFile struct {
	Concurrency    int            `yaml:"concurrency"`
	Region         string         `yaml:"region,omitempty"`
	Offline        string         `yaml:"offline"`
	Division       string         `yaml:"division"`
	CMax           int            `yaml:"max_supported_concurrency"`
	Model          string         `yaml:"model_name"`
	Precision      string         `yaml:"model_precision"`
	ModelLink      string         `yaml:"link_to_model"`
	Transformation string         `yaml:"link_to_model_transformation,omitempty"`
	Notes          string         `yaml:"model_notes,omitempty"`
	Dataset        string         `yaml:"dataset"`
	DatasetName    string         `yaml:"dataset_name"`
	DatasetType    string         `yaml:"dataset_type"`
	DatasetLink    string         `yaml:"dataset_link"`
	Sources        string         `yaml:"shared_src"`
	Documents      string         `yaml:"shared_docs"`
	SeedSet        string         `yaml:"seed_set"`
	TargetCohort   string         `yaml:"target_cohort"`
	Runtime        runtimeFile    `yaml:"runtime_settings"`
	Warmup         map[string]any `yaml:"warmup"`
	Steady         steadyFile     `yaml:"steady_state"`
	TTFTP90        float64        `yaml:"ttft_p90_ms,omitempty"`
	TPOTP90        float64        `yaml:"tpot_p90_ms,omitempty"`
	SystemTPS      float64        `yaml:"system_tps,omitempty"`
	TPSPerUser     float64        `yaml:"tps_per_user,omitempty"`
	Client         string         `yaml:"client"`
	Simulated      bool           `yaml:"simulated,omitempty"`
}

type runtimeFile struct {
	LoadPattern string            `yaml:"load_pattern"`
	MinDuration int64             `yaml:"min_duration_ms"`
	MinSamples  int               `yaml:"min_sample_count"`
	Stream      bool              `yaml:"stream_all_chunks"`
	Seeds       map[string]uint64 `yaml:"runtime"`
}

type steadyFile struct {
	Status  string            `yaml:"status,omitempty"`
	Verdict string            `yaml:"verdict"`
	Window  map[string]any    `yaml:"window,omitempty"`
	State   map[string]string `yaml:"state,omitempty"`
}

// simulated stands in every point that a simulator made.
const simulated = "SIMULATED: a simulator answered the requests, no hardware was measured"

// point is the text of point.yaml.
func (d Description) point(c *Curve, r Run) ([]byte, error) {
	p, set := r.Point, d.seeds()
	f := pointFile{
		Concurrency: p.Concurrency, Offline: "none", Division: d.Division, CMax: c.CMax, Model: d.Model.Name, Precision: d.Model.Precision, ModelLink: d.Model.Link,
		Transformation: d.Model.Transformation, Notes: d.Model.Notes, Dataset: d.Dataset.ID, DatasetName: d.Dataset.Name, DatasetType: d.Dataset.Type, DatasetLink: d.Dataset.Link,
		Sources: "src/" + d.Implementation, Documents: "docs", SeedSet: d.SeedSet, TargetCohort: d.TargetCohort,
		Runtime: runtimeFile{"concurrency", mlperf.RulesOf(c.Profile).Least(p.Concurrency).Milliseconds(), p.Pass, true,
			map[string]uint64{"scheduler_rng_seed": set.Scheduler, "sample_index_rng_seed": set.Sample, "model_seed": set.Model}},
		Warmup:  map[string]any{"duration_s": 0, "requests_issued": 0, "requests_completed": 0, "data_source": "none; no request was sent before the run", "concurrency": 0},
		Steady:  steady(p.Steady),
		TTFTP90: p.TTFTP90, TPOTP90: p.TPOTP90, SystemTPS: p.SystemTPS, TPSPerUser: p.TPSPerUser, Client: "perflab " + r.Header.Version, Simulated: p.Simulated,
	}
	if regions, err := c.Regions(); err == nil {
		f.Region = regions.Of(p.Concurrency)
	}
	if p.Concurrency == c.CMax {
		f.Offline = "elected"
	}
	if p.Simulated {
		f.Notes = simulated
	}
	return yaml.Marshal(f)
}

func steady(s mlperf.Steady) steadyFile {
	f := steadyFile{Status: s.Status, Verdict: s.Verdict, State: s.State}
	if s.Last >= s.First {
		f.Window = map[string]any{"super_pass_start": s.First, "super_pass_end": s.Last, "super_pass_size": s.Size, "n_samples": s.Samples, "duration_s": s.DurationS}
	}
	return f
}

// summary is the text of result_summary.json: of the window that the point's figures are of.
func (r Run) summary() ([]byte, error) {
	p := r.Point
	issued := p.Issued
	if p.Basis == mlperf.FromSteady {
		issued = p.Steady.Samples
	}
	f := map[string]any{
		"n_samples_issued": issued, "n_samples_completed": r.Point.Of.Latency.Count, "n_samples_failed": issued - r.Point.Of.Latency.Count,
		"duration_ns": p.BasisS() * 1e9, "ttft": r.Point.Of.TTFT, "tpot": r.Point.Of.TPOT, "latency": r.Point.Of.Latency, "output_sequence_lengths": r.Point.Of.Output,
		"figures_of": p.Basis, "client": "perflab " + r.Header.Version,
	}
	for name, v := range map[string]float64{"system_tps": p.SystemTPS, "tps_per_user": p.TPSPerUser, "ttft_p90_ms": p.TTFTP90, "tpot_p90_ms": p.TPOTP90} {
		if v > 0 { // else it is missing
			f[name] = v
		}
	}
	if p.Simulated {
		f["simulated"] = simulated
	}
	return indented(f)
}

// config is the text of config.yaml: perflab's specification of the run, which is JSON and so YAML too.
func (r Run) config() ([]byte, error) {
	var spec any
	if err := json.Unmarshal(r.Header.Spec, &spec); err != nil {
		return nil, fmt.Errorf("read the specification of the run at concurrency %d: %w", r.Point.Concurrency, err)
	}
	b, err := indented(map[string]any{"client": "perflab " + r.Header.Version, "spec": spec})
	return append([]byte("# perflab's specification of the run; MLCommons' own client writes one of its own\n"), b...), err
}

// files are those of a curve, by their paths below the directory of the submission.
func (d Description) files(c *Curve) (map[string][]byte, error) {
	system, err := d.system(c.CMax)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, r := range c.Runs {
		dir := "results/" + d.System + "/" + d.Model.Name + "/r" + strconv.Itoa(r.Point.Concurrency) + "/"
		of := maps.Clone(system)
		of["tps_utilization"] = r.Point.SystemTPS / c.best()
		for name, make := range map[string]func() ([]byte, error){
			"point.yaml": func() ([]byte, error) { return d.point(c, r) }, "result_summary.json": r.summary, "config.yaml": r.config,
			"system_desc.json": func() ([]byte, error) { return indented(of) },
		} {
			if out[dir+name], err = make(); err != nil {
				return nil, fmt.Errorf("write %s%s: %w", dir, name, err)
			}
		}
		if path := d.Accuracy[r.Point.Concurrency]; path != "" {
			var scores any
			if err := d.readJSON("accuracy", path, &scores); err != nil {
				return nil, err
			}
			if out[dir+"accuracy_results.json"], err = indented(scores); err != nil {
				return nil, err
			}
		}
	}
	if d.SystemPower != "" {
		var power map[string]any
		if err := d.readJSON("system_power", d.SystemPower, &power); err != nil {
			return nil, err
		}
		if out["results/"+d.System+"/system_power.json"], err = indented(power); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
