package study

import (
	"cmp"
	"maps"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// File is a study file: what to tune, on what, under which load, and how to
// search. Unknown keys are errors. docs/study.schema.json describes it to
// editors. Its JSON is what a study is known by when it is resumed: keys and
// their order stay.
type File struct {
	Name     string `yaml:"name" json:"name" jsonschema:"required,description=Short name; the default output directory is made from it"`
	Title    string `yaml:"title,omitempty" json:"title,omitempty" jsonschema:"description=Title of the report; made from model\\, objective and hardware when empty"`
	Seed     uint64 `yaml:"seed,omitempty" json:"seed,omitempty" jsonschema:"description=Every random choice of the study follows from it"`
	Strategy string `yaml:"strategy,omitempty" json:"strategy,omitempty" jsonschema:"enum=race,enum=staged,enum=survey,enum=random,enum=grid,enum=tpe,description=race: configurations of the engines' catalogue compete and the winner is launched repeatedly beside the baseline (default). staged: each stage's best goes on. survey: measure every candidate under every workload. random\\, grid and tpe draw from the same space as race"`

	Model       string               `yaml:"model,omitempty" json:"model,omitempty" jsonschema:"description=Model of the baseline (a repository id)"`
	ModelConfig map[string]string    `yaml:"model_config,omitempty" json:"model_config,omitempty" jsonschema:"description=Model id -> path of its config.json (from the working directory) for models perflab does not know"`
	Hardware    Hardware             `yaml:"hardware" json:"hardware" jsonschema:"required"`
	Engines     map[string]EngineUse `yaml:"engines,omitempty" json:"engines,omitempty" jsonschema:"description=Engine name (vllm\\, sglang\\, trtllm\\, llamacpp) -> how this study uses it"`

	Objective Objective  `yaml:"objective" json:"objective" jsonschema:"required"`
	Workloads []Workload `yaml:"workloads" json:"workloads" jsonschema:"required,description=The first is the primary one: the search is judged by it"`
	Baseline  *Candidate `yaml:"baseline,omitempty" json:"baseline,omitempty" jsonschema:"description=All but survey: the configuration every gain is counted from"`
	Stages    []Stage    `yaml:"stages,omitempty" json:"stages,omitempty" jsonschema:"description=staged: the steps of the search in order. race: changes to try besides the catalogue's"`
	Search    `yaml:",inline"`
	Survey    []Candidate `yaml:"candidates,omitempty" json:"candidates,omitempty" jsonschema:"description=survey: what to measure; the first is the baseline"`

	Runtime Runtime `yaml:"runtime" json:"runtime" jsonschema:"required"`
	Bench   Client  `yaml:"bench,omitempty" json:"bench,omitzero" jsonschema:"description=How the load is sent"`
	Budget  Budget  `yaml:"budget,omitempty" json:"budget,omitzero"`

	Accuracy *Accuracy `yaml:"accuracy,omitempty" json:"accuracy,omitempty" jsonschema:"description=Questions by which changes of numerics are guarded\\, with the bound accuracy >= baseline - 2pt: docs/tuning.md"`
}

// Values are engine-neutral parameters: name -> value as the engine's flag
// takes it. In a study file a value may be a string, a number or true or false.
type Values map[string]string

// Hardware is what one study has to spend on a configuration.
type Hardware struct {
	GPU   string `yaml:"gpu" json:"gpu" jsonschema:"required,description=Accelerator name as in perflab sim --list\\, or cpu for a host without one"`
	GPUs  int    `yaml:"gpus" json:"gpus" jsonschema:"required,minimum=1,description=Devices in all; a configuration that uses fewer is started as several replicas"`
	Nodes int    `yaml:"nodes,omitempty" json:"nodes,omitempty" jsonschema:"description=Machines they are in (default 1)"`

	Price result.Price `yaml:"price_per_hour,omitempty" json:"price_per_hour,omitzero" jsonschema:"description=What all of it costs an hour\\, with the currency: 98.32 USD. Reports then have the cost of a million tokens"`
}

// EngineUse is what a study says about an engine it uses.
type EngineUse struct {
	Version string         `yaml:"version,omitempty" json:"version,omitempty"`
	Image   string         `yaml:"image,omitempty" json:"image,omitempty" jsonschema:"description=runtime kind docker: image of this engine"`
	Set     Values         `yaml:"set,omitempty" json:"set,omitempty" jsonschema:"description=Parameters of every configuration of this engine"`
	Flags   []string       `yaml:"flags,omitempty" json:"flags,omitempty" jsonschema:"description=Flags of the engine's own added to every command"`
	File    map[string]any `yaml:"file,omitempty" json:"file,omitempty" jsonschema:"description=trtllm: what every command's configuration file holds besides\\, in the file's own keys (YAML as of --extra_llm_api_options). Parameters win over it"`
	Env     []string       `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=KEY=value added to every command's environment. Engines inherit perflab's own environment too\\, which is the better place for a secret. One that stands here is replaced in all that is written but the private copy of the study file"`
}

// Objective is the figure to improve and what must hold besides.
type Objective struct {
	Metric string   `yaml:"metric" json:"metric" jsonschema:"required,description=Any metric of docs/metrics.md; total_token_throughput and mean_latency are the usual ones"`
	SLOs   []string `yaml:"slos,omitempty" json:"slos,omitempty" jsonschema:"description=Such as p99_ttft_ms <= 500\\, or in a race of the baseline's figure: p99_ttft_ms <= baseline + 5%; a figure that is missing fails"`

	Weights map[string]float64 `yaml:"weights,omitempty" json:"weights,omitempty" jsonschema:"description=race: workload name -> weight: the figure is the weighted geometric mean of theirs (default: the primary workload's alone)"`
	MinGain Share              `yaml:"min_gain,omitempty" json:"min_gain,omitempty" jsonschema:"description=Gains up to this are no difference: 2% or 0.02 (default of race 2%)"`
}

// Workload is one load of a study: the workload itself and the name it has
// here.
type Workload struct {
	Name          string `yaml:"name" json:"name" jsonschema:"required,description=Short name; names the run directories"`
	Title         string `yaml:"title,omitempty" json:"title,omitempty" jsonschema:"description=Name in the report"`
	workload.Spec `yaml:",inline"`

	FindMax *LoadSearch `yaml:"find_max,omitempty" json:"find_max,omitempty" jsonschema:"description=Search the highest load that meets objective.slos within each launch; gives goodput_rate or goodput_concurrency. See docs/tuning.md"`
}

// Candidate is a change of the incumbent configuration.
type Candidate struct {
	Label  string `yaml:"label" json:"label" jsonschema:"required"`
	Engine string `yaml:"engine,omitempty" json:"engine,omitempty" jsonschema:"enum=vllm,enum=sglang,enum=trtllm,enum=llamacpp"`
	Model  string `yaml:"model,omitempty" json:"model,omitempty" jsonschema:"description=Another checkpoint"`
	Set    Values `yaml:"set,omitempty" json:"set,omitempty" jsonschema:"description=Engine-neutral parameters (tp\\, expert_parallel\\, max_num_batched_tokens ...); an empty value removes one"`
	Fresh  bool   `yaml:"fresh,omitempty" json:"fresh,omitempty" jsonschema:"description=Start from nothing instead of the incumbent: only what stands here and the study's model"`
}

// Stage is one step of a staged study.
type Stage struct {
	Name string      `yaml:"name" json:"name" jsonschema:"required"`
	Try  []Candidate `yaml:"try" json:"try" jsonschema:"required"`
}

// Runtime says how engines are started.
type Runtime struct {
	Kind      string             `yaml:"kind" json:"kind" jsonschema:"required,enum=process,enum=docker,enum=ssh,enum=simulated,enum=predicted,enum=existing,description=process: start the engine's command. docker: in a container. ssh: on other machines. simulated: the same with a simulated engine in its place. predicted: no server at all\\, the simulator's replay in virtual time. existing: an endpoint that is already up"`
	URLs      []string           `yaml:"urls,omitempty" json:"urls,omitempty" jsonschema:"description=existing: base URLs\\, one a replica"`
	ReadyS    float64            `yaml:"ready_timeout_s,omitempty" json:"ready_timeout_s,omitempty" jsonschema:"description=Seconds until every replica must be ready (default 900)"`
	Docker    *docker.Settings   `yaml:"docker,omitempty" json:"docker,omitempty" jsonschema:"description=docker: the container that engines run in; its image is that of engines without one of their own"`
	Hosts     []deploy.HostEntry `yaml:"hosts,omitempty" json:"hosts,omitempty" jsonschema:"description=ssh: the machines\\, the first is where replicas of one machine begin"`
	SSHConfig string             `yaml:"ssh_config,omitempty" json:"ssh_config,omitempty" jsonschema:"description=ssh: configuration file in place of the user's own"`
	Direct    bool               `yaml:"direct,omitempty" json:"direct,omitempty" jsonschema:"description=ssh: engines listen on all addresses of their machine and are reached there\\, not through a forwarded port: for latencies to publish"`
	Spread    string             `yaml:"spread,omitempty" json:"spread,omitempty" jsonschema:"enum=ray,enum=native,enum=mpirun,enum=rpc,description=How a replica that needs several machines spans them: ray (vLLM)\\, native (vLLM's and SGLang's own flags)\\, mpirun (TensorRT-LLM) or rpc (llama.cpp); the default suits the engine"`
	Hooks     Hooks              `yaml:"hooks,omitempty" json:"hooks,omitzero" jsonschema:"description=existing: commands of your own that start and stop what serves; with a start hook a study may have candidates"`
	Dir       string             `yaml:"dir,omitempty" json:"dir,omitempty" jsonschema:"description=process and ssh: working directory of the engines"`
	Limits    deploy.Limits      `yaml:"limits,omitempty" json:"limits,omitzero" jsonschema:"description=process and ssh: what each process of an engine may take"`
	StartupS  float64            `yaml:"startup_s,omitempty" json:"startup_s,omitempty" jsonschema:"description=simulated: seconds a simulated engine takes to load (default 0.5)"`
}

// Hooks are shell commands of the user's own around a configuration's runs.
type Hooks struct {
	Start string `yaml:"start,omitempty" json:"start,omitempty" jsonschema:"description=Shell command that starts the server; finds the serving command in PERFLAB_COMMAND\\, and PERFLAB_NAME\\, PERFLAB_REPLICAS and PERFLAB_URLS"`
	Stop  string `yaml:"stop,omitempty" json:"stop,omitempty" jsonschema:"description=Shell command that stops it\\, and returns when it has ended"`
}

// Client is how a study sends its load; the zero value is perflab bench's
// defaults.
type Client struct {
	Backend string   `yaml:"backend,omitempty" json:"backend,omitempty" jsonschema:"enum=openai-chat,enum=openai,enum=vllm,enum=openai-responses,enum=anthropic,enum=sglang,enum=openai-embeddings,enum=pooling,enum=rerank,enum=score,description=API to speak (default openai-chat); a simulated or predicted engine has chat and plain completions"`
	Cache   string   `yaml:"cache,omitempty" json:"cache,omitempty" jsonschema:"enum=unique,enum=reset,enum=warm,enum=shared,description=What the prefix cache may hold: unique (default\\, prompts new to each engine)\\, reset (emptied before each run)\\, warm (the prompts are sent once before) or shared (hits of earlier runs count)"`
	Warmups *int     `yaml:"num_warmups,omitempty" json:"num_warmups,omitempty" jsonschema:"description=Requests sent and thrown away before each run (default 8)"`
	Block   string   `yaml:"block,omitempty" json:"block,omitempty" jsonschema:"enum=vllm,enum=gpustack,description=Layout of the result blocks in the report"`
	Goodput []string `yaml:"goodput,omitempty" json:"goodput,omitempty" jsonschema:"description=Bounds of a good request for request_goodput\\, such as ttft:200 and tpot:50 (ms)"`

	TelemetryS *float64 `yaml:"telemetry_interval_s,omitempty" json:"telemetry_interval_s,omitempty" jsonschema:"description=Seconds between readings of the engines' metrics\\, the host and the GPUs during a run (default 1; 0: none)"`
}

// Budget bounds a study.
type Budget struct {
	Trials int    `yaml:"trials,omitempty" json:"trials,omitempty" jsonschema:"description=Launches in all; those that confirm the winner are kept back"`
	Time   string `yaml:"time,omitempty" json:"time,omitempty" jsonschema:"description=Such as 30m"`

	GPUHours float64 `yaml:"gpu_hours,omitempty" json:"gpu_hours,omitempty" jsonschema:"exclusiveMinimum=0,description=Hours of allocated GPUs\\, from launch to stop; with time as well the one that ends first"`
}

// Kinds of runtime.
const (
	Process   = "process"
	Docker    = "docker"
	SSH       = "ssh"
	Simulated = "simulated"
	Predicted = "predicted"
	Existing  = "existing"
)

// follow sets the strategy, and drops what only others know.
func (f *File) follow(strategy string) {
	f.Strategy = strategy
	switch {
	case !f.draws():
		f.Search = Search{}
	case strategy != Race:
		f.Search.Race = RaceUse{}
	}
	if strategy != Race {
		f.Objective.Weights = nil
	}
}

func (f *File) fill() {
	if f.Strategy == "" {
		f.Strategy = Race
		if f.Attached() { // there is nothing to choose from
			f.Strategy = Staged
		}
	}
	f.Hardware.Nodes = cmp.Or(f.Hardware.Nodes, 1)
	if f.Bench.Backend == "" {
		f.Bench.Backend = "openai-chat"
	}
	if f.Bench.Block == "" {
		f.Bench.Block = "vllm"
	}
	for i := range f.Workloads {
		w := &f.Workloads[i]
		if w.Title == "" {
			w.Title = w.Name
		}
		w.FindMax.fill()
		w.Spec = w.FindMax.first(w.Spec.Defaults(), f.RunSLOs())
	}
}

// config merges a candidate's fields into the tuner's map.
func (k Candidate) config() tune.Config {
	c := tune.Config{}
	maps.Copy(c, k.Set)
	if k.Engine != "" {
		c["engine"] = k.Engine
	}
	if k.Model != "" {
		c["model"] = k.Model
	}
	return c
}

// change is a stage's candidate as the tuner takes it.
func (f *File) change(k Candidate) tune.Change {
	if k.Fresh {
		return tune.Change{Label: k.Label, Set: f.whole(k), Replace: true}
	}
	return tune.Change{Label: k.Label, Set: k.config()}
}

// whole is a candidate that starts from nothing but the study's model.
func (f *File) whole(k Candidate) tune.Config {
	c := k.config()
	if c["model"] == "" {
		c["model"] = f.Model
	}
	return c
}
