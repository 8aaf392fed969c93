package draft

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/doctor"
	"perflab/internal/engine"
	"perflab/internal/study"
)

// SchemaFile is the name of the schema that a file names to editors, beside it.
const SchemaFile = "study.schema.json"

// sheet is a study file that is written.
type sheet struct {
	Answers
	report    doctor.Report
	named     bool // the user wants this engine
	objective Objective
	loads     []Workload
	tp        int
	limited   bool // the context is limited to what the workloads need
	b         strings.Builder
}

func newSheet(a Answers, r doctor.Report, tp int, limited, named bool) (*sheet, error) {
	s := &sheet{Answers: a, report: r, tp: tp, limited: limited, named: named}
	var err error
	if s.objective, err = objective(a.Objective); err != nil {
		return nil, err
	}
	s.loads, err = loads(a.Workload)
	return s, err
}

// line writes one, with a comment where there is something to say.
func (s *sheet) line(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

// plain are words that YAML takes for text as they are.
var plain = regexp.MustCompile(`^[A-Za-z/.][A-Za-z0-9_./@-]*$`)

// word is a text as YAML: in quotation marks where it could be taken for something else.
func word(text string) string {
	if plain.MatchString(text) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "."}, strings.ToLower(text)) {
		return text
	}
	return quote(text)
}

func (s *sheet) modelled() bool { return s.Runtime == study.Simulated || s.Runtime == study.Predicted }

// small reports whether requests are slow, so that a load must be short.
func (s *sheet) small() bool { return s.GPU == cpu }

func (s *sheet) text() []byte {
	s.b.Reset()
	s.line("# yaml-language-server: $schema=%s", SchemaFile)
	s.line("#")
	s.line("# perflab tune %s.yaml --check   checks the file and says what would be tried", s.Name)
	s.line("# perflab tune %s.yaml           tunes, and writes a report", s.Name)
	for _, n := range s.notes() {
		s.line("#\n# %s", n)
	}
	s.line("\nname: %s  # the output goes to perflab-out/NAME", word(s.Name))
	s.line("seed: 42  # every random choice follows from it")
	s.line("model: %s", word(s.Model))
	s.modelConfig()
	s.hardware()
	s.engines()
	s.goal()
	s.workloads()
	s.line("\n# Every gain is counted from this configuration. It must start on the hardware.")
	s.line("baseline:\n  label: %s\n  engine: %s", word(s.title()), s.Engine)
	s.needs()
	s.changes()
	s.budget()
	s.runtime()
	return []byte(s.b.String())
}

// needs are the parameters without which the baseline would not start.
func (s *sheet) needs() {
	var set []string
	if s.tp > 1 {
		set = append(set, fmt.Sprintf("tp: %d", s.tp))
	}
	if s.limited {
		set = append(set, fmt.Sprintf("max_model_len: %d", s.longest()))
	}
	if len(set) > 0 {
		s.line("  set: {%s}  # without it the model does not fit", strings.Join(set, ", "))
	}
}

// longest is a context that holds every request of the workloads, whose lengths vary by half.
func (s *sheet) longest() int {
	const step = 1024
	most := 0
	for _, w := range s.loads {
		most = max(most, 2*(w.In+w.Out))
	}
	return (most + step - 1) / step * step
}

func (s *sheet) title() string {
	e, err := engine.ByName(s.Engine)
	if err != nil {
		return s.Engine
	}
	if s.Runtime == study.Existing {
		return e.Title + " as it runs"
	}
	return e.Title + " defaults"
}

// modelConfig names the config.json of a model that perflab has no numbers of.
func (s *sheet) modelConfig() {
	if _, err := arch.LookupModel(s.Model); err == nil || s.Runtime == study.Existing {
		return
	}
	for _, m := range s.report.Models {
		if m.ID == s.Model && m.Config != "" {
			s.line("model_config: {%s: %s}", word(m.ID), word(m.Config))
		}
	}
}

func (s *sheet) hardware() {
	s.line("\nhardware:\n  gpu: %s  # perflab sim --list has the names", s.GPU)
	s.line("  gpus: %d  # in all; a configuration of fewer is started as several replicas", s.GPUs)
	if here := s.Runtime == study.Process || s.Runtime == study.Docker; here && len(s.report.Accelerators) > 0 && s.report.Host.MemoryGiB >= 1 {
		s.line("  host_memory_gib: %d  # of the machine: host caches without room there are refused before a launch", int(s.report.Host.MemoryGiB))
	}
	if s.Price != "" {
		s.line("  price_per_hour: %s", word(s.Price))
	} else {
		s.line("  # price_per_hour: 32 USD  # of all of it; reports then have the cost of a million tokens")
	}
}

// engines are those that compete: what is installed and can be started, else the one named.
func (s *sheet) engines() {
	if s.Runtime == study.Existing {
		return
	}
	names := []string{s.Engine}
	if !s.named && s.Engine == usualEngine && s.Runtime != study.Process { // so that there is something to race
		names = append(names, "sglang")
	}
	if s.Runtime == study.Process {
		for _, name := range (Answers{GPU: s.GPU}).startable(s.report) {
			if name != "llamacpp" && s.Engine != "llamacpp" && !slices.Contains(names, name) { // which serves other files
				names = append(names, name)
			}
		}
	}
	s.line("\n# The engines that compete. perflab engines NAME shows what is known of one.\nengines:")
	for _, name := range names {
		s.engine(name)
	}
}

func (s *sheet) engine(name string) {
	var parts []string
	version := ""
	if e, err := engine.ByName(name); err == nil && len(e.Versions()) > 0 && s.modelled() {
		version = e.Versions()[len(e.Versions())-1]
	}
	if e, ok := s.report.Engine(name); ok && s.Runtime == study.Process {
		version = e.Version
	}
	if version != "" {
		parts = append(parts, "version: "+quote(version))
	}
	if s.Runtime == study.Docker {
		parts = append(parts, "image: "+quote(images[name]))
	}
	s.line("  %s: {%s}", name, strings.Join(parts, ", "))
}

// quote is a text in quotation marks: 0.10 is no number.
func quote(text string) string { return strconv.Quote(text) }

func (s *sheet) goal() {
	s.line("\nobjective:\n  metric: %s%s", s.objective.Metric, comment(s.objective.Doc))
	if len(s.SLOs) == 0 {
		s.line("  # slos: [p99_ttft_ms <= 500]  # what must hold besides; docs/metrics.md has the names")
		return
	}
	s.line("  slos:")
	for _, slo := range s.SLOs {
		s.line("    - %s", quote(slo))
	}
}

func comment(text string) string {
	if text == "" {
		return ""
	}
	return "  # " + text
}

// sizes of a load: requests in all and at once. Latency is of few at once.
func (s *sheet) sizes() (requests, atOnce int) {
	busy := slices.Contains([]string{"throughput", "cost", "goodput"}, s.objective.Name)
	switch {
	case s.small() && busy:
		return 64, 8
	case s.small():
		return 24, 2
	case s.modelled() && busy:
		return 300, 64
	case s.modelled():
		return 100, 8
	case busy:
		return 1000, 128
	}
	return 200, 8
}

func (s *sheet) workloads() {
	s.line("\n# The first one is the primary one: the search is judged by it.\nworkloads:")
	requests, atOnce := s.sizes()
	for _, w := range s.loads {
		s.line("  - name: %s\n    title: %s\n    dataset_name: random  # made-up prompts; perflab bench --help has the datasets", word(w.Name), word(w.Title))
		s.line("    num_prompts: %d\n    random_input_len: %d  # tokens on average\n    random_output_len: %d\n    random_range_ratio: 0.5", requests, w.In, w.Out)
		s.line("    max_concurrency: %d  # requests at once; request_rate: 8 sends 8 a second instead", atOnce)
	}
	if s.objective.Metric == "request_goodput" {
		s.line("\nbench:\n  goodput: [\"ttft:%d\", \"tpot:%d\"]  # ms: what a request must meet to count", s.tolerance(500), s.tolerance(50))
	}
}

// tolerance is a bound of a latency, wider where there is no accelerator.
func (s *sheet) tolerance(ms int) int {
	if s.small() {
		return 20 * ms
	}
	return ms
}

// changes are some that nobody's answers depend on. More are the catalogue's to find.
func (s *sheet) changes() {
	if s.Runtime == study.Existing {
		return
	}
	s.line("\n# Each is launched, as a change of the baseline, before anything else is tried.\nstages:")
	if s.Engine == "llamacpp" {
		s.slots()
		return
	}
	s.line("  - name: Batching\n    try:")
	for _, n := range []int{4096, 16384} {
		s.line("      - {label: %d tokens a step, set: {max_num_batched_tokens: %d}}", n, n)
	}
	if s.Engine != "vllm" && s.Engine != "sglang" { // of the others it is the checkpoint's
		return
	}
	off := "# " // where there are answers
	if s.modelled() {
		off = ""
	}
	s.line("  %[1]s- name: Quantization  # it may change the answers: docs/tuning.md says how accuracy is guarded\n  %[1]s  try:\n  %[1]s    - {label: FP8 weights, set: {quantization: fp8}}", off)
}

// slots are what llama.cpp mostly gains by: more requests at a time than its own four, with room
// for the longest in each, and prompts in larger parts.
func (s *sheet) slots() {
	slots, part := []int{16, 64}, 2048
	if s.small() {
		slots, part = []int{8}, 1024
	}
	s.line("  - name: Parallel slots\n    try:")
	for _, n := range slots {
		s.line("      - {label: %d slots, set: {max_num_seqs: %d, max_model_len: %d}}", n, n, s.longest())
	}
	s.line("  - name: Micro-batch\n    try:\n      - {label: %d tokens computed at once, set: {micro_batch: %d}}", part, part)
}

func (s *sheet) budget() {
	if s.Runtime == study.Existing {
		return
	}
	trials := 16
	if s.Runtime == study.Simulated {
		trials = 8
	}
	s.line("\nbudget:\n  trials: %d  # launches in all, those that confirm the winner included", trials)
	if !s.modelled() {
		s.line("  # time: 4h")
	}
}

func (s *sheet) runtime() {
	s.line("\nruntime:\n  kind: %s%s", s.Runtime, comment(map[string]string{
		study.Process: "each trial starts the engine's command on this machine", study.Docker: "each trial starts a container",
		study.Existing:  "the server that runs is measured as it is",
		study.Simulated: "SIMULATED engines; for real ones: process, docker, ssh or kubernetes", study.Predicted: "SIMULATED: nothing is started; for real engines: process, docker, ssh or kubernetes",
	}[s.Runtime]))
	switch s.Runtime {
	case study.Existing:
		s.line("  urls: [%s]", quote(s.url()))
	case study.Docker:
		s.line("  docker:\n    mounts: [\"~/.cache/huggingface:/root/.cache/huggingface\"]\n    env: [HF_TOKEN]  # its value is taken from perflab's own environment\n    ipc: host")
	}
}

// url is where the server of runtime existing answers.
func (s *sheet) url() string {
	for _, v := range s.report.Servers {
		if slices.Contains(v.Models, s.Model) && !v.Simulated {
			return v.URL
		}
	}
	port := 8000
	if e, err := engine.ByName(s.Engine); err == nil {
		port = cmp.Or(e.DefaultPort, port)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// notes are what the user should know of the file.
func (s *sheet) notes() []string {
	var out []string
	add := func(holds bool, format string, args ...any) {
		if holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	e, here := s.report.Engine(s.Engine)
	add(s.modelled() && len(s.report.Accelerators) == 0, "This machine has no GPU: the study is of the simulated runtime, and all its figures are SIMULATED.")
	add(s.modelled() && len(s.report.Accelerators) > 0, "The study is of the simulated runtime, and all its figures are SIMULATED: for real ones choose the runtime process or docker.")
	add(s.Runtime == study.Process && (!here || !e.OnPath), "%s is not installed on this machine: the study is for one that has it.", cmp.Or(e.Title, s.Engine))
	add(!s.modelled() && s.Runtime != study.Existing && s.GPU != cpu && count(s.report, s.GPU) < s.GPUs,
		"This machine has %d of the %d x %s of the study: it is for another one.", count(s.report, s.GPU), s.GPUs, s.GPU)
	add(s.Runtime == study.Existing, "The server at %s is measured as it is: a study that tries configurations starts engines itself (runtime process or docker).", s.url())
	add(s.Runtime == study.Existing && s.GPU == cpu && len(s.report.Accelerators) == 0, "No accelerator was found, so hardware says cpu: correct it, if the server has one.")
	return out
}
