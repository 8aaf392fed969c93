package study

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/deploy/kube"
	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/hardware"
	"perflab/internal/price"
	"perflab/internal/redact"
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
	Baseline  *Candidate `yaml:"baseline,omitempty" json:"baseline,omitempty" jsonschema:"description=Required but by survey: the configuration every gain is counted from. It must start on the hardware"`
	Stages    []Stage    `yaml:"stages,omitempty" json:"stages,omitempty" jsonschema:"description=staged: the steps of the search in order. race: changes to try besides the catalogue's"`
	Search    `yaml:",inline"`
	Survey    []Candidate `yaml:"candidates,omitempty" json:"candidates,omitempty" jsonschema:"description=Required by survey: what to measure"`

	Runtime Runtime `yaml:"runtime" json:"runtime" jsonschema:"required"`
	Bench   Client  `yaml:"bench,omitempty" json:"bench,omitzero" jsonschema:"description=How the load is sent"`
	Budget  Budget  `yaml:"budget,omitempty" json:"budget,omitzero"`

	Accuracy *Accuracy `yaml:"accuracy,omitempty" json:"accuracy,omitempty" jsonschema:"description=Questions by which changes of numerics are guarded\\, with the bound accuracy >= baseline - 2pt: docs/tuning.md"`

	Reference *Reference `yaml:"reference,omitempty" json:"reference,omitempty" jsonschema:"description=A recommendation that somebody published\\, to hold the study's own against: docs/tuning.md"`
}

// CheckOff leaves out the look at the machines before the first launch.
const CheckOff = "off"

// Hardware is what one study has to spend on a configuration.
type Hardware struct {
	GPU   string `yaml:"gpu" json:"gpu" jsonschema:"required,description=Accelerator name as in perflab sim --list\\, or cpu for a host without one"`
	GPUs  int    `yaml:"gpus" json:"gpus" jsonschema:"required,minimum=1,description=Devices in all; a configuration that uses fewer is started as several replicas"`
	Nodes int    `yaml:"nodes,omitempty" json:"nodes,omitempty" jsonschema:"description=Machines they are in (default 1)"`

	Devices hardware.Devices `yaml:"devices,omitempty" json:"devices,omitempty" jsonschema:"description=process and docker: which devices of the machine engines may use\\, by index or UUID: [4\\, 5]. Default: those that the environment shows (CUDA_VISIBLE_DEVICES\\, or what the platform has in its place)\\, else the first. Of other machines: devices of runtime.hosts"`

	Check string `yaml:"check,omitempty" json:"check,omitempty" jsonschema:"enum=on,enum=off,description=Before the first launch the machines are asked what they have\\, and a study of other hardware ends (default on). off: they are not asked\\, and the report says so"`

	HostMemory float64 `yaml:"host_memory_gib,omitempty" json:"host_memory_gib,omitzero" jsonschema:"description=Memory of each machine in GiB. Configurations whose host_cache has no room there are then refused before a launch"`

	Price price.Hourly `yaml:"price_per_hour,omitempty" json:"price_per_hour,omitzero" jsonschema:"description=What all of it costs an hour\\, with the currency: 98.32 USD. Reports then have the cost of a million tokens"`
}

// EngineUse is what a study says about an engine it uses.
type EngineUse struct {
	Version string         `yaml:"version,omitempty" json:"version,omitempty"`
	Image   string         `yaml:"image,omitempty" json:"image,omitempty" jsonschema:"description=runtime kinds docker and kubernetes: image of this engine"`
	Set     Values         `yaml:"set,omitempty" json:"set,omitempty" jsonschema:"description=Parameters of every configuration of this engine"`
	Flags   []string       `yaml:"flags,omitempty" json:"flags,omitempty" jsonschema:"description=Flags of the engine's own added to every command"`
	File    map[string]any `yaml:"file,omitempty" json:"file,omitempty" jsonschema:"description=trtllm: what every command's configuration file holds besides\\, in the file's own keys (YAML as of --extra_llm_api_options). Parameters win over it"`
	Prefill PoolUse        `yaml:"prefill,omitempty" json:"prefill,omitzero" jsonschema:"description=What engines that only compute prompts are given besides\\, in configurations with disaggregation"`
	Decode  PoolUse        `yaml:"decode,omitempty" json:"decode,omitzero" jsonschema:"description=What engines that only generate are given besides"`
	Router  []string       `yaml:"router,omitempty" json:"router,omitempty" jsonschema:"description=Further flags of the router before them (vllm-router\\, sglang_router): [--policy\\, round_robin]"`
	Env     []string       `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=KEY=value added to every command's environment. Engines inherit perflab's own environment too\\, which is the better place for a secret. One that stands here is replaced in all that is written"`
}

// PoolUse is what a study says about the prefill or the decode engines of a replica.
type PoolUse struct {
	Set   Values   `yaml:"set,omitempty" json:"set,omitempty" jsonschema:"description=Parameters over those of the configuration: tp\\, max_num_batched_tokens\\, max_num_seqs ..."`
	Flags []string `yaml:"flags,omitempty" json:"flags,omitempty" jsonschema:"description=Further flags of the engine's own"`
}

// Objective is the figure to improve and what must hold besides.
type Objective struct {
	Metric string   `yaml:"metric" json:"metric" jsonschema:"required,description=Any metric of docs/metrics.md; total_token_throughput and mean_latency are the usual ones"`
	SLOs   []string `yaml:"slos,omitempty" json:"slos,omitempty" jsonschema:"description=Such as p99_ttft_ms <= 500\\, or in a race of the baseline's figure: p99_ttft_ms <= baseline + 5%; a figure that is missing fails"`

	Weights map[string]float64 `yaml:"weights,omitempty" json:"weights,omitempty" jsonschema:"description=race: workload name -> weight: the figure is the weighted geometric mean of theirs (default: the primary workload's alone)"`
	MinGain Share              `yaml:"min_gain,omitempty" json:"min_gain,omitempty" jsonschema:"description=Gains up to this are no difference: 2% or 0.02 (default of race 2%)"`
}

// Kinds of runtime.
const (
	Process    = "process"
	Docker     = "docker"
	SSH        = "ssh"
	Kubernetes = "kubernetes"
	Fleet      = "fleet"
	Simulated  = "simulated"
	Predicted  = "predicted"
	Existing   = "existing"
)

// Strategies of a study.
const (
	Race   = "race"
	Staged = "staged"
	Survey = "survey"
	Random = "random"
	Grid   = "grid"
	TPE    = "tpe"
)

// Strategies lists the names, the default first.
func Strategies() []string { return []string{Race, Staged, Survey, Random, Grid, TPE} }

// Workload is one load of a study: the workload itself and the name it has
// here.
type Workload struct {
	Name          string `yaml:"name" json:"name" jsonschema:"required,description=Short name; names the run directories"`
	Title         string `yaml:"title,omitempty" json:"title,omitempty" jsonschema:"description=Name in the report"`
	workload.Spec `yaml:",inline"`

	FindMax *LoadSearch `yaml:"find_max,omitempty" json:"find_max,omitempty" jsonschema:"description=Search the highest load that meets objective.slos within each launch; gives goodput_rate\\, goodput_concurrency or\\, of sessions\\, agents_served. See docs/tuning.md"`

	Sweep string `yaml:"sweep,omitempty" json:"sweep,omitempty" jsonschema:"description=Loads to measure one after another in each launch: concurrency=1\\,8\\,32\\,128 or rate=1..16x2\\, as perflab bench --sweep. A race is judged by all of them. See docs/tuning.md"`

	index int   // among the workloads of the file
	swept Swept // of one that stands for a load of a sweep
}

// Candidate is a change of the incumbent configuration.
type Candidate struct {
	Label  string `yaml:"label" json:"label" jsonschema:"required"`
	Engine string `yaml:"engine,omitempty" json:"engine,omitempty" jsonschema:"enum=vllm,enum=sglang,enum=trtllm,enum=llamacpp"`
	Model  string `yaml:"model,omitempty" json:"model,omitempty" jsonschema:"description=Another checkpoint"`
	Set    Values `yaml:"set,omitempty" json:"set,omitempty" jsonschema:"description=Engine-neutral parameters (tp\\, expert_parallel\\, max_num_batched_tokens ...); an empty value removes one"`
	Fresh  bool   `yaml:"fresh,omitempty" json:"fresh,omitempty" jsonschema:"description=Start from nothing instead of the incumbent: only what stands here and the study's model"`

	Published float64 `yaml:"published,omitempty" json:"published,omitempty" jsonschema:"exclusiveMinimum=0,description=Figure of the objective on the first workload that somebody published of this whole configuration"`
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

// Stage is one step of a staged study.
type Stage struct {
	Name string      `yaml:"name" json:"name" jsonschema:"required"`
	Try  []Candidate `yaml:"try" json:"try" jsonschema:"required"`
}

// Runtime says how engines are started.
type Runtime struct {
	Kind       string             `yaml:"kind" json:"kind" jsonschema:"required,enum=process,enum=docker,enum=ssh,enum=kubernetes,enum=fleet,enum=simulated,enum=predicted,enum=existing,description=process: start the engine's command. docker: in a container. ssh: on other machines. kubernetes: as pods of a cluster. fleet: on machines where perflab agent runs\\, in containers where docker is given. simulated: the same with a simulated engine in its place. predicted: no server at all\\, the simulator's replay in virtual time. existing: an endpoint that is already up"`
	URLs       []string           `yaml:"urls,omitempty" json:"urls,omitempty" jsonschema:"description=existing: base URLs\\, one a replica"`
	Service    string             `yaml:"service,omitempty" json:"service,omitempty" jsonschema:"description=existing: a Service of a Kubernetes cluster\\, NAMESPACE/NAME\\, or NAME in the namespace of kubernetes or of the context. It is the target unless urls name a gateway before it; its pods are in the report\\, and their metrics are read: docs/kubernetes.md"`
	Port       string             `yaml:"port,omitempty" json:"port,omitempty" jsonschema:"oneof_type=integer;string,description=existing: port of the service\\, by number or name (default: the only one that it has)"`
	ReadyS     float64            `yaml:"ready_timeout_s,omitempty" json:"ready_timeout_s,omitempty" jsonschema:"description=Seconds until every replica must be ready (default 7200\\, and more where an earlier start took long)"`
	SilenceS   float64            `yaml:"silence_timeout_s,omitempty" json:"silence_timeout_s,omitempty" jsonschema:"description=Seconds that the logs of a start may go without progress\\, such as loading\\, downloading\\, compiling and capturing (default 900\\, or ready_timeout_s where that is given)"`
	Docker     *docker.Settings   `yaml:"docker,omitempty" json:"docker,omitempty" jsonschema:"description=docker\\, and fleet for containers on its machines: the container that engines run in; its image is that of engines without one of their own"`
	Kubernetes *kube.Settings     `yaml:"kubernetes,omitempty" json:"kubernetes,omitempty" jsonschema:"description=kubernetes: the cluster\\, and how pods are made there; existing with a service: the cluster\\, reach and load: docs/kubernetes.md"`
	Hosts      []deploy.HostEntry `yaml:"hosts,omitempty" json:"hosts,omitempty" jsonschema:"description=ssh: the machines\\, the first is where replicas of one machine begin"`
	Machines   []Machine          `yaml:"machines,omitempty" json:"machines,omitempty" jsonschema:"description=ssh\\, docker\\, fleet and simulated\\, strategy race: machines of one kind\\, each with all of hardware.gpus\\, on which trials run at the same time: docs/tuning.md"`
	Labels     map[string]string  `yaml:"labels,omitempty" json:"labels,omitempty" jsonschema:"description=fleet\\, in place of machines: those whose agents are there with all of these labels when the study starts\\, such as gpu: h100"`
	SSHConfig  string             `yaml:"ssh_config,omitempty" json:"ssh_config,omitempty" jsonschema:"description=ssh: configuration file in place of the user's own"`
	Direct     bool               `yaml:"direct,omitempty" json:"direct,omitempty" jsonschema:"description=ssh: engines listen on all addresses of their machine and are reached there\\, not through a forwarded port: for latencies to publish"`
	Spread     string             `yaml:"spread,omitempty" json:"spread,omitempty" jsonschema:"enum=ray,enum=native,enum=mpirun,enum=rpc,description=How a replica that needs several machines spans them: ray (vLLM)\\, native (vLLM's and SGLang's own flags)\\, mpirun (TensorRT-LLM) or rpc (llama.cpp); the default suits the engine"`
	Hooks      Hooks              `yaml:"hooks,omitempty" json:"hooks,omitzero" jsonschema:"description=existing: commands of your own that start and stop what serves; with a start hook a study may have candidates"`
	Dir        string             `yaml:"dir,omitempty" json:"dir,omitempty" jsonschema:"description=process\\, ssh and fleet\\, not in containers: working directory of the engines"`
	Limits     deploy.Limits      `yaml:"limits,omitempty" json:"limits,omitzero" jsonschema:"description=process\\, ssh and fleet\\, not in containers: what each process of an engine may take"`
	StartupS   float64            `yaml:"startup_s,omitempty" json:"startup_s,omitempty" jsonschema:"description=simulated: seconds a simulated engine takes to load (default 0.5)"`

	speed float64 // simulated: of the machine that the study runs on, see Study.On
}

// Speed is how fast the simulated machine is beside others of its kind; 0: as fast.
func (r Runtime) Speed() float64 { return r.speed }

// Modelled reports whether a model of engine and device stands in for them.
func (r Runtime) Modelled() bool { return r.Kind == Simulated || r.Kind == Predicted }

// StartsEngines reports whether real engines are started.
func (r Runtime) StartsEngines() bool {
	return !r.Modelled() && r.Kind != Existing
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

// TelemetryInterval is the one that a study asks for; 0: none.
func (c Client) TelemetryInterval() time.Duration {
	if c.TelemetryS == nil {
		return bench.DefaultTelemetry
	}
	return time.Duration(*c.TelemetryS * float64(time.Second))
}

// Budget bounds a study.
type Budget struct {
	Trials int    `yaml:"trials,omitempty" json:"trials,omitempty" jsonschema:"description=Launches in all; those that confirm the winner are kept back"`
	Time   string `yaml:"time,omitempty" json:"time,omitempty" jsonschema:"description=Such as 30m"`

	GPUHours float64 `yaml:"gpu_hours,omitempty" json:"gpu_hours,omitempty" jsonschema:"exclusiveMinimum=0,description=Hours of allocated GPUs\\, from launch to stop; with time as well the one that ends first"`
}

// limit parses the budget's time; 0 is none.
func (b Budget) limit() (time.Duration, error) {
	if b.Time == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(b.Time)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("budget time %q is not a duration: write 30m or 2h", b.Time)
	}
	return d, nil
}

// Search is what a study says about the space that race, random, grid and tpe
// search: by itself it is the engines' catalogue.
type Search struct {
	Space   map[string][]string `yaml:"space,omitempty" json:"space,omitempty" jsonschema:"description=Narrows the catalogue: parameter (or engine or model) -> the values that may be tried; an empty value is the engine's default"`
	Arms    []Candidate         `yaml:"arms,omitempty" json:"arms,omitempty" jsonschema:"description=Whole configurations to try besides the catalogue's"`
	Priors  []string            `yaml:"priors,omitempty" json:"priors,omitempty" jsonschema:"description=Files of recipes (from the working directory): YAML lists of label\\, engine\\, model\\, set and source. Those of the study's engines and models are tried too"`
	Earlier []string            `yaml:"earlier,omitempty" json:"earlier,omitempty" jsonschema:"description=race: studies made before (directories of perflab tune)\\, directories of runs\\, or results of other clients that perflab import reads; paths from the working directory. What they measured directs the search\\, weighed by how alike they are\\, and confirms nothing: docs/tuning.md"`
	Race    RaceUse             `yaml:"race,omitempty" json:"race,omitzero"`
}

// RaceUse says how a race goes about it.
type RaceUse struct {
	Rounds    int     `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"description=Least number of launches of what leads and of the baseline that confirm it; more follow while the gain is not shown and the budget allows (default 3\\, with a budget of under 12 launches\\, or of time for so few\\, 2)"`
	ShortLoad float64 `yaml:"short_load,omitempty" json:"short_load,omitempty" jsonschema:"description=Share of the load under which configurations compete first (default a third)"`
}

// Recipe is a configuration that somebody has published, in a file of priors.
type Recipe struct {
	Label  string `yaml:"label"`
	Engine string `yaml:"engine"`
	Model  string `yaml:"model"`
	Set    Values `yaml:"set"`
	Source string `yaml:"source"` // where it comes from, for the report
}

// Attached reports whether the study measures what is up already: then nothing can be
// refused, configured or launched again.
func (f *File) Attached() bool {
	return f.Runtime.Kind == Existing && f.Runtime.Hooks.Start == ""
}

// searchesCatalogue reports whether the strategy searches the engines' catalogue.
func (f *File) searchesCatalogue() bool {
	return slices.Contains([]string{Race, Random, Grid, TPE}, f.Strategy)
}

// OnCPU reports whether the engines have no accelerator.
func (f *File) OnCPU() bool {
	gpu, err := arch.LookupAccelerator(f.Hardware.GPU)
	return err == nil && gpu.Platform == arch.CPU
}

// visibleVariables are those that deal devices to engines.
func (f *File) visibleVariables() []string {
	gpu, err := arch.LookupAccelerator(f.Hardware.GPU)
	if err != nil {
		return nil
	}
	return gpu.Platform.VisibleVariables()
}

// AllocatedGPUs is how many GPUs every trial has, 0 on CPUs.
func (f *File) AllocatedGPUs() int {
	if f.OnCPU() {
		return 0
	}
	return f.Hardware.GPUs
}

// InContainers reports whether engines are started in containers.
func (f *File) InContainers() bool {
	return f.Runtime.Kind == Docker || f.Runtime.Kind == Fleet && f.Runtime.Docker != nil
}

// Container is where an engine runs that is started in a container.
func (f *File) Container(engineName string) docker.Settings {
	var c docker.Settings
	if f.Runtime.Docker != nil {
		c = *f.Runtime.Docker
	}
	c.Image = cmp.Or(f.Engines[engineName].Image, c.Image)
	return c.WithDefaults(f.AllocatedGPUs())
}

// Cluster is where an engine runs, of runtime kind kubernetes.
func (f *File) Cluster(engineName string) kube.Settings {
	var k kube.Settings
	if f.Runtime.Kubernetes != nil {
		k = *f.Runtime.Kubernetes
	}
	k.Image = cmp.Or(f.Engines[engineName].Image, k.Image)
	if gpu, err := arch.LookupAccelerator(f.Hardware.GPU); err == nil && gpu.Platform != arch.CPU {
		k.Resource = cmp.Or(k.Resource, render.Resource(gpu.Platform))
	}
	return k
}

// Secrets are the values of those that the study file holds, wherever they stand
// in it.
func (f *File) Secrets() redact.Values {
	var v redact.Values
	for _, use := range f.Engines {
		v = v.Join(redact.ValuesOf(slices.Concat(use.Flags, use.Prefill.Flags, use.Decode.Flags, use.Router), use.Env))
	}
	if d := f.Runtime.Docker; d != nil {
		v = v.Join(redact.ValuesOf(d.Entrypoint, d.Env))
	}
	known := *f
	if k := f.Runtime.Kubernetes; k != nil { // which names Secrets, and has no value of any
		nameless := *k
		nameless.Secrets, known.Runtime.Kubernetes = nil, &nameless
	}
	var all any
	if b, err := json.Marshal(known); err == nil && json.Unmarshal(b, &all) == nil { // as its fingerprint is made
		v.LearnTree("", all)
	}
	return v
}

// Redacted is the text of the study file without secrets, line for line.
func (f *File) Redacted(source []byte) []byte { return []byte(f.Secrets().Text(string(source))) }

// WorkloadNames are the names in the order of the file.
func (f *File) WorkloadNames() []string {
	names := make([]string, len(f.Workloads))
	for i, w := range f.Workloads {
		names[i] = w.Name
	}
	return names
}

// LoadSearch is that of a workload of the study, nil where its load is given.
func (f *File) LoadSearch(name string) *LoadSearch {
	for i := range f.Workloads {
		if f.Workloads[i].Name == name {
			return f.Workloads[i].FindMax
		}
	}
	return nil
}

// RunSLOs are the SLOs that one run can be judged by. Those on what a search finds,
// on answers and against the baseline are for the strategy, which sees all trials.
func (f *File) RunSLOs() []result.SLO {
	var out []result.SLO
	for _, text := range f.Objective.SLOs {
		slo, err := result.ParseSLO(text)
		if err != nil { // of another kind: what is wrong with it is said elsewhere
			continue
		}
		m, err := result.Lookup(slo.Metric)
		if err != nil || slices.Contains(m.Needs(), result.NeedSearch) || m.Name == tune.AccuracyFigure || m.Name == tune.AgreementFigure {
			continue
		}
		out = append(out, slo)
	}
	return out
}

// usedEngines are the engines that the study's configurations name, in the catalogue's order.
func (f *File) usedEngines() []string {
	named := map[string]bool{}
	if f.Baseline != nil {
		named[f.Baseline.Engine] = true
	}
	for _, st := range f.Stages {
		for _, k := range st.Try {
			named[k.Engine] = true
		}
	}
	for _, k := range f.Survey {
		named[k.Engine] = true
	}
	var out []string
	for _, e := range engine.All() {
		if named[e.Name] {
			out = append(out, e.Name)
		}
	}
	return out
}

// searchedNames are the engines and models that a search of the catalogue may use: all
// that the study names, or those that its space does.
func (f *File) searchedNames() (engines, models []string) {
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	add(&engines, f.Baseline.Engine)
	add(&engines, slices.Sorted(maps.Keys(f.Engines))...)
	add(&models, cmp.Or(f.Baseline.Model, f.Model), f.Model)
	named := slices.Clone(f.Arms)
	for _, st := range f.Stages {
		named = append(named, st.Try...)
	}
	for _, k := range named {
		add(&engines, k.Engine)
		add(&models, k.Model)
	}
	if r := f.Reference; r != nil {
		add(&engines, r.Engine)
		add(&models, f.referenceModel())
	}
	if v := f.Space["engine"]; len(v) > 0 {
		engines = v
	}
	if v := f.Space["model"]; len(v) > 0 {
		models = v
	}
	engines = slices.DeleteFunc(slices.Clone(engines), func(name string) bool {
		e, err := engine.ByName(name)
		return err != nil || e.MeasuredOnly && f.Runtime.Modelled()
	})
	return engines, models
}

// change is a stage's candidate as the tuner takes it.
func (f *File) change(k Candidate) tune.Change {
	if k.Fresh {
		return tune.Change{Label: k.Label, Set: f.fullConfig(k), Replace: true}
	}
	return tune.Change{Label: k.Label, Set: k.config()}
}

// fullConfig is a candidate that starts from nothing but the study's model.
func (f *File) fullConfig(k Candidate) tune.Config {
	c := k.config()
	if c["model"] == "" {
		c["model"] = f.Model
	}
	return c
}
