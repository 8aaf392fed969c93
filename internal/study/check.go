package study

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/result"
)

// check checks every value of a file, first each by itself, then what the study
// reads besides, then the search as a whole, and resolves the study. Of one that was not
// read whole the values are checked that were read.
func check(f *File, doc *yaml.Node, flawed bool) (*Study, []*field.Error) {
	c := &checker{s: f, doc: doc}
	c.values()
	if flawed || len(c.faults) > 0 {
		return nil, c.faults
	}
	s, err := resolve(f, c.recipes)
	if err != nil {
		c.addUnder("", "", err)
		return nil, c.faults
	}
	s.unasked = problems(doc, c.unasked)
	s.earlierAt = placesOf(doc, "earlier", len(f.Earlier))
	c.inputs(s)
	if len(c.faults) == 0 {
		c.startable(s)
	}
	if len(c.faults) == 0 {
		c.search(s)
	}
	return s, c.faults
}

// values checks the values of the file.
func (c *checker) values() {
	s := c.s
	switch {
	case s.Name == "":
		c.add("name", "name is missing: give the study a short name")
	case !fileName.MatchString(s.Name):
		c.add("name", "name %q cannot name a directory: use letters, digits, points, - and _", s.Name)
	}
	c.hardware()
	c.objective()
	c.workloads()
	c.sweeps()
	c.loadSearches()
	c.precisions()
	c.objectiveNeeds()
	c.runtime()
	switch s.Strategy {
	case Staged:
		c.baselineAndStages()
		c.noCatalogueSearch()
	case Survey:
		c.survey()
		c.noCatalogueSearch()
	default:
		if !slices.Contains(Strategies(), s.Strategy) {
			c.add("strategy", "strategy %q is not known: use %s%s", s.Strategy, strings.Join(Strategies(), ", "), strings.Replace(Suggest(s.Strategy, Strategies()), ":", ";", 1))
		}
		catalogueChecker{c}.check()
	}
	c.engines()
	c.bench()
	c.accuracy()
	c.published()
	c.budget()
}

// reservedNames are those of other things in the directory of a trial.
var reservedNames = []string{"logs", "trial.json"}

// fileName is what names of studies and workloads look like: directories are
// called after them.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func (c *checker) engines() {
	for _, name := range slices.Sorted(maps.Keys(c.s.Engines)) {
		at, use := "engines."+name, c.s.Engines[name]
		if _, err := engine.ByName(name); err != nil {
			c.add(at, "%v", err)
			continue
		}
		known := c.params(at+".set", use.Set)
		for i, e := range use.Env {
			switch key, _, ok := strings.Cut(e, "="); {
			case !ok || key == "":
				c.add(field.Index(at+".env", i), "%q is not KEY=value", key)
			case c.s.Runtime.StartsEngines() && slices.Contains(c.s.visibleVariables(), key):
				c.add(field.Index(at+".env", i), "each replica is dealt devices of its own by %s: name those that it may have under hardware.devices, or for each host under runtime.hosts", key)
			}
		}
		_, err := engine.Command{Engine: name, Model: "MODEL"}.WithFile(use.File)
		if err != nil {
			c.add(at+".file", "%v", err)
		}
		if known && err == nil {
			c.command(at+".flags", name, use, nil)
		}
		c.pool(at+".prefill", name, use.Prefill)
		c.pool(at+".decode", name, use.Decode)
	}
}

// pool checks what engines of one pool are given.
func (c *checker) pool(at, engineName string, use PoolUse) {
	if _, inPool := use.Set[engine.Disaggregation]; inPool {
		c.add(at+".set", "%s is of the whole replica: set it in a configuration", engine.Disaggregation)
		return
	}
	if c.params(at+".set", use.Set) {
		c.command(at, engineName, EngineUse{Set: use.Set, Flags: use.Flags}, nil)
	}
}

func (c *checker) bench() {
	s := c.s
	c.client()
	if b := s.Bench.Block; b != "vllm" && b != "gpustack" {
		c.add("bench.block", "block %q is not known: use vllm or gpustack", b)
	}
	if n := s.Bench.TelemetryS; n != nil && *n != 0 && *n < bench.MinTelemetry.Seconds() {
		c.add("bench.telemetry_interval_s", "telemetry_interval_s is %g: it must be at least %g, or 0 for no readings", *n, bench.MinTelemetry.Seconds())
	}
	if n := s.Bench.Warmups; n != nil && *n < 0 {
		c.add("bench.num_warmups", "num_warmups is %d: it cannot be negative", *n)
	}
	bounds := false
	for i, text := range s.Bench.Goodput {
		bounds = true
		if _, err := result.ParseGoodput(text); err != nil {
			c.add(field.Index("bench.goodput", i), "%v", err)
		}
	}
	if s.Objective.Metric == "request_goodput" && !bounds {
		c.add("objective.metric", "request_goodput needs bench.goodput: the bounds of a good request, such as ttft:200")
	}
}

// search builds the strategy, which checks what lies between candidates.
func (c *checker) search(s *Study) {
	_, _, err := s.NewStrategy(nil)
	for _, e := range field.All(err) {
		c.add(filePath.Replace(e.Path), "%s", e.Reason)
	}
}

// filePath makes paths of the file of those that package tune has.
var filePath = strings.NewReplacer(".changes[", ".try[", "configs[", "candidates[")

// inputs reads what the study needs besides itself, so that a missing file or
// an unknown model is known before the first launch and not after hours.
func (c *checker) inputs(s *Study) {
	for i, w := range c.s.Workloads {
		at := c.s.workloadAt(i)
		opened, _, err := bench.OpenWorkload(w.Spec)
		if err != nil {
			named := map[string]string{"dataset_path": w.Path, "tokenizer": w.Tokenizer}
			for _, e := range field.All(err) {
				c.addUnder(at, "workload "+w.Name+": ", &field.Error{Path: e.Path, Reason: e.Reason + whereLooked(named[e.Path])})
			}
			continue
		}
		c.fits(at, w.Name, opened)
	}
	if !c.s.Attached() { // what is up has loaded its model
		c.models(s)
	}
}

// models looks up the models that the study names, or finds their files.
func (c *checker) models(s *Study) {
	seen := map[string]bool{"": true}
	model := func(at, name, engineName string) {
		if seen[name] {
			return
		}
		if e, err := engine.ByName(engineName); err == nil && e.MeasuredOnly {
			seen[name] = true
			// Where engines are started here the file of a model is here too; a
			// repository is the engine's to find.
			if c.s.Runtime.Kind == Process && strings.HasSuffix(name, ".gguf") {
				if _, err := os.Stat(name); err != nil {
					c.add(at, "%v%s", err, whereLooked(name))
				}
			}
			return
		}
		seen[name] = true
		if _, ok := c.s.ModelConfig[name]; ok {
			at = "model_config"
		}
		if _, err := s.model(name); err != nil {
			c.addUnder(at, "", err)
		}
	}
	standard := "" // the engine that a candidate inherits
	if b := c.s.Baseline; b != nil {
		standard = b.Engine
		model(modelAt("baseline", *b), cmp.Or(b.Model, c.s.Model), b.Engine)
	}
	for i, st := range c.s.Stages {
		for j, k := range st.Try {
			name := k.Model
			if k.Fresh {
				name = cmp.Or(k.Model, c.s.Model)
			}
			model(modelAt(field.Index(field.Index("stages", i)+".try", j), k), name, cmp.Or(k.Engine, standard))
		}
	}
	for i, k := range c.s.Arms {
		model(modelAt(field.Index("arms", i), k), cmp.Or(k.Model, c.s.Model), k.Engine)
	}
	if r := c.s.Reference; r != nil {
		model(modelAt("reference", r.candidate()), c.s.referenceModel(), r.Engine)
	}
	for i, name := range c.s.Space["model"] {
		model(field.Index("space.model", i), name, standard)
	}
	for i, k := range c.s.Survey {
		model(modelAt(field.Index("candidates", i), k), cmp.Or(k.Model, c.s.Model), k.Engine)
	}
}

// modelAt is where the model of a candidate is named: there, or for the whole study.
func modelAt(at string, k Candidate) string {
	if k.Model == "" {
		return "model"
	}
	return at + ".model"
}

func (c *checker) hardware() {
	h := c.s.Hardware
	switch gpu, err := arch.LookupAccelerator(h.GPU); {
	case h.GPU == "":
		c.add("hardware.gpu", "hardware.gpu is missing: an accelerator of perflab sim --list, or cpu for a host without one, to measure on")
	case err != nil:
		c.add("hardware.gpu", "%v", err)
	case !gpu.Known() && c.s.Runtime.Modelled():
		c.add("hardware.gpu", "nothing is known of %s to predict from: name an accelerator of perflab sim --list, or start engines and measure them, with runtime kind process", gpu.Title)
	}
	switch {
	case h.GPUs == 0:
		c.add("hardware.gpus", "hardware.gpus is missing: say how many devices the study has, from 1 to %d", bench.MostGPUs)
	case h.GPUs < 1 || h.GPUs > bench.MostGPUs:
		c.add("hardware.gpus", "gpus is %d: say how many devices the study has, from 1 to %d", h.GPUs, bench.MostGPUs)
	case h.Nodes < 1:
		c.add("hardware.nodes", "nodes is %d: say how many machines the gpus are in", h.Nodes)
	case h.GPUs%h.Nodes != 0:
		c.add("hardware.nodes", "%d gpus do not spread evenly over %d nodes", h.GPUs, h.Nodes)
	}
	if h.Check != "" && h.Check != "on" && h.Check != CheckOff {
		c.add("hardware.check", "check %q is not known: use on or off", h.Check)
	}
	if !(h.HostMemory >= 0 && h.HostMemory < 1<<20) {
		c.add("hardware.host_memory_gib", "host_memory_gib is %v: say how many GiB of memory each machine has, or leave it out", h.HostMemory)
	}
	if h.Devices != nil {
		if err := checkDevices(c.s); err != nil {
			c.add("hardware.devices", "%v", err)
		}
	}
}

// checkDevices says what is wrong with the devices that a study names.
func checkDevices(f *File) error {
	h := f.Hardware
	switch err := h.Devices.Validate(); {
	case err != nil:
		return err
	case f.OnCPU():
		return fmt.Errorf("devices are accelerators, and %s has none", h.GPU)
	case f.Runtime.Kind == SSH:
		return errors.New("devices are of one machine: name them for each host, under runtime.hosts")
	case f.Runtime.Kind == Fleet:
		return errors.New("devices are of one machine: name them for each machine, under runtime.machines")
	case f.Runtime.Kind == Kubernetes:
		return errors.New("devices does not apply to runtime kind kubernetes: the cluster gives each pod its devices")
	case f.Runtime.Kind == Existing:
		return errors.New("devices does not apply to runtime kind existing, whose engines are dealt theirs by others")
	case len(h.Devices) != h.GPUs:
		return fmt.Errorf("%d devices are named, and gpus is %d", len(h.Devices), h.GPUs)
	}
	return nil
}

func (c *checker) objective() {
	m, err := result.Lookup(c.s.Objective.Metric)
	switch {
	case c.s.Objective.Metric == "":
		c.add("objective.metric", "objective.metric is missing: total_token_throughput and mean_latency are the usual ones")
	case err != nil:
		c.add("objective.metric", "%v", err)
	case m.Better == result.Neither:
		c.add("objective.metric", "%s is neither better high nor low: choose a figure that can be improved", m.Name)
	}
	c.bounds()
}

func (c *checker) budget() {
	b := c.s.Budget
	if _, err := b.limit(); err != nil {
		c.add("budget.time", "%v", err)
	}
	switch {
	case !(b.GPUHours >= 0 && b.GPUHours < 1e9):
		c.add("budget.gpu_hours", "gpu_hours is %v: give hours above 0", b.GPUHours)
	case b.GPUHours > 0 && c.s.OnCPU():
		c.add("budget.gpu_hours", "gpu_hours needs GPUs: give this study a time")
	}
}

func (c *checker) workloads() {
	if len(c.s.Workloads) == 0 {
		c.add("workloads", "workloads is missing: name at least one, the first is the primary one")
	}
	seen, wrong := map[string]bool{}, map[int]bool{}
	for i, w := range c.s.Workloads {
		at := c.s.workloadAt(i)
		switch {
		case w.Name == "":
			c.add(at+".name", "name is missing: workload %d needs one, for its directories", i+1)
		case !fileName.MatchString(w.Name), strings.HasSuffix(w.Name, ".tmp"), slices.Contains(reservedNames, w.Name):
			c.add(at+".name", "workload name %q cannot name a run directory: use another, of letters, digits, points, - and _", w.Name)
		case seen[w.Name]:
			c.add(at+".name", "workload name %q is used twice", w.Name)
		}
		seen[w.Name] = true
		if err := w.Spec.Validate(); err != nil && !wrong[w.index] { // once for all loads of a sweep
			wrong[w.index] = true
			c.addUnder(at, "workload "+w.Name+": ", err)
		}
	}
}

func (c *checker) runtime() {
	r := c.s.Runtime
	switch r.Kind {
	case Process, Docker, SSH, Kubernetes, Fleet, Simulated, Predicted:
		if len(r.URLs) > 0 {
			c.add("runtime.urls", "urls applies to runtime kind existing, not %s", r.Kind)
		}
	case Existing:
		if len(r.URLs) == 0 && r.Service == "" {
			c.add("runtime", "runtime kind existing needs urls: the base URLs of the running engine (or service: a Service of a Kubernetes cluster)")
		}
		if c.s.Attached() && (len(c.s.Stages) > 0 || len(c.s.Survey) > 1) {
			c.add("runtime.kind", "an existing endpoint cannot be reconfigured: a study with candidates needs hooks.start and hooks.stop, or another runtime kind")
		}
	case "":
		c.add("runtime.kind", "runtime.kind is missing: process, docker, ssh, kubernetes, fleet, simulated, predicted or existing")
	default:
		c.add("runtime.kind", "runtime kind %q is not known: use process, docker, ssh, kubernetes, fleet, simulated, predicted or existing", r.Kind)
	}
	places{c}.processes()
	places{c}.service()
	for i, u := range r.URLs {
		if p, err := url.Parse(u); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			c.add(field.Index("runtime.urls", i), "%q is no URL: write http://HOST:PORT", u)
		}
	}
	switch {
	case r.ReadyS < 0:
		c.add("runtime.ready_timeout_s", "ready_timeout_s is %v: give seconds above 0", r.ReadyS)
	case r.ReadyS > 0 && r.Kind == Predicted:
		c.add("runtime.ready_timeout_s", "ready_timeout_s does not apply to runtime kind predicted, which starts no server")
	}
	switch {
	case r.SilenceS < 0:
		c.add("runtime.silence_timeout_s", "silence_timeout_s is %v: give seconds above 0", r.SilenceS)
	case r.SilenceS > 0 && (r.Kind == Predicted || r.Kind == Existing):
		c.add("runtime.silence_timeout_s", "silence_timeout_s does not apply to runtime kind %s, of which no log is read", r.Kind)
	}
	if r.StartupS < 0 {
		c.add("runtime.startup_s", "startup_s is %v: it cannot be negative", r.StartupS)
	}
	if r.StartupS != 0 && r.Kind != Simulated {
		c.add("runtime.startup_s", "startup_s applies to runtime kind simulated, not %s", r.Kind)
	}
}

// processes checks what is said of the engines' processes and of hooks.
func (c places) processes() {
	r := c.s.Runtime
	if where := r.Kind; c.s.InContainers() || where != Process && where != SSH && where != Fleet && where != "" {
		if where == Fleet {
			where += " with docker"
		}
		if r.Dir != "" {
			c.add("runtime.dir", "dir does not apply to runtime kind %s", where)
		}
		if r.Limits != (deploy.Limits{}) {
			c.add("runtime.limits", "limits do not apply to runtime kind %s", where)
		}
	}
	if err := r.Limits.Validate(); err != nil {
		c.add("runtime.limits", "%v", err)
	}
	c.machines()
	c.parallel()
	c.containers()
	c.pods()
	switch {
	case r.Hooks == (Hooks{}):
	case r.Kind != Existing:
		c.add("runtime.hooks", "hooks apply to runtime kind existing: perflab starts and stops the engine itself by kind %s", r.Kind)
	case r.Hooks.Start == "" || r.Hooks.Stop == "":
		c.add("runtime.hooks", "give both hooks: what one configuration leaves up would be measured as the next")
	}
}

// baselineAndStages checks the baseline, and the stages of changes to it.
func (c *checker) baselineAndStages() {
	s := c.s
	if len(s.Survey) > 0 {
		c.add("candidates", "candidates belongs to strategy survey, which must be said; a %s study has a baseline", s.Strategy)
	}
	if s.Baseline == nil {
		c.add("baseline", "baseline is missing: the configuration every gain is counted from")
	} else {
		if s.Baseline.Label == "" {
			s.Baseline.Label = "baseline"
		}
		c.candidate("baseline", *s.Baseline, true)
	}
	for i, st := range s.Stages {
		at := field.Index("stages", i)
		if st.Name == "" {
			c.add(at+".name", "name is missing: stage %d needs one, for the report", i+1)
		}
		if len(st.Try) == 0 {
			c.add(at+".try", "try is missing: stage %q needs candidates", st.Name)
		}
		for j, k := range st.Try {
			c.candidate(field.Index(at+".try", j), k, k.Fresh)
		}
	}
}

func (c *checker) survey() {
	s := c.s
	if s.Baseline != nil || len(s.Stages) > 0 {
		c.add("strategy", "a survey has candidates only: baseline and stages belong to the other strategies")
	}
	if len(s.Survey) == 0 {
		c.add("candidates", "candidates is missing: a survey measures a list of configurations")
	}
	if s.Budget != (Budget{}) {
		c.add("budget", "budget belongs to the other strategies: a survey measures all its candidates")
	}
	for i, k := range s.Survey {
		c.candidate(field.Index("candidates", i), k, true)
	}
}
