package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/engine"
)

// Ability is what a command can do here.
type Ability struct {
	Command string `json:"command"` // without "perflab"
	State   State  `json:"state"`
	Text    string `json:"text"`
	Try     string `json:"try,omitempty"` // a command line for it
}

// State says how much of a command there is here.
type State string

// States of a command.
const (
	Ready         State = "ready"
	SimulatedOnly State = "simulated only"
	NeedsServer   State = "needs a server"
)

// Missing is something that is not here and would be of use.
type Missing struct {
	What string `json:"what"` // a sentence
	Do   string `json:"do"`   // how to get it
}

func abilities(r Report) []Ability {
	return []Ability{
		benchAbility(r), tuneAbility(r),
		{"predict", Ready, "Says what a serving command would give on any accelerator of perflab sim --list, without a GPU (SIMULATED)" + r.thisDevice() + ".", predictLine(r)},
		{"sim", Ready, "Starts a simulated engine to try everything on (SIMULATED).", "perflab sim --gpu h100-sxm -- vllm serve Qwen/Qwen3-8B"},
		{"report, compare, import, audit, export", Ready, "They need files alone.", ""},
		selfcheckAbility(r),
	}
}

// measurable is a server that perflab bench can be pointed at: a real one first.
func (r Report) measurable() (Server, bool) {
	for _, simulated := range []bool{false, true} {
		for _, s := range r.Servers {
			if len(s.Models) > 0 && s.Simulated == simulated {
				return s, true
			}
		}
	}
	return Server{}, false
}

func benchAbility(r Report) Ability {
	s, ok := r.measurable()
	if !ok {
		return Ability{"bench", NeedsServer, fmt.Sprintf("None answers on %s. One elsewhere is named by --base-url.", portsText()), ""}
	}
	text := "A server answers at " + s.URL + "."
	if s.Simulated {
		text = "A simulated server answers at " + s.URL + " (SIMULATED)."
	}
	return Ability{"bench", Ready, text, fmt.Sprintf("perflab bench --base-url %s --model %s --num-prompts 100", s.URL, engine.Quote(s.Models[0]))}
}

func portsText() string {
	var words []string
	for _, p := range ports() {
		words = append(words, fmt.Sprint(p))
	}
	return "the usual ports " + strings.Join(words, ", ") + " of this machine"
}

// tuneAbility is by what engines could be started on.
func tuneAbility(r Report) Ability {
	a := Ability{Command: "tune", State: Ready, Try: "perflab init"}
	startable := r.startable()
	s, served := r.measurable()
	switch {
	case !r.usable() && r.Program.OS == "windows":
		a.State, a.Text = SimulatedOnly, "Engines are not started on Windows: studies with runtime predicted work, those of real engines start from Linux."
	case len(startable) > 0:
		a.Text = "Starts " + strings.Join(startable, " and ") + " " + r.onText() + "."
	case r.Docker != nil && r.Docker.GivesGPUs() && len(r.Accelerators) > 0:
		a.Text = "Starts engines in containers " + r.onText() + "."
	case served && !s.Simulated:
		a.Text = "No engine is installed here. A study can measure the server at " + s.URL + " as it is (runtime existing)."
	case r.SSH != "":
		a.State, a.Text = SimulatedOnly, "No engine is here. Studies start simulated ones, or real ones on machines that ssh reaches."
	default:
		a.State, a.Text = SimulatedOnly, "No engine is here. Studies start simulated ones."
	}
	return a
}

// startable are the engines that a study could start here: on accelerators any, on processors
// llama.cpp. vLLM has a build for processors, which nothing tells from the others but its version.
func (r Report) startable() []string {
	var out []string
	for _, e := range r.Engines {
		if e.OnPath && (len(r.Accelerators) > 0 || e.OnCPU()) {
			out = append(out, strings.TrimSpace(e.Title+" "+e.Version))
		}
	}
	return out
}

// OnCPU reports whether the engine serves without an accelerator.
func (e Engine) OnCPU() bool { return e.Name == "llamacpp" || strings.HasSuffix(e.Version, "+cpu") }

func (r Report) onText() string {
	if len(r.Accelerators) == 0 {
		return "on the processors"
	}
	return "on " + r.devices()
}

// devices counts the accelerators by name.
func (r Report) devices() string {
	var names, parts []string
	counts := map[string]int{}
	for _, a := range r.Accelerators {
		if counts[a.Name]++; counts[a.Name] == 1 {
			names = append(names, a.Name)
		}
	}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d x %s", counts[name], cmp.Or(name, "a device without a name")))
	}
	return strings.Join(parts, " and ")
}

func (r Report) thisDevice() string {
	if len(r.Accelerators) > 0 && len(r.Accelerators[0].Known) > 0 {
		return "; the one here is " + r.Accelerators[0].Known[0]
	}
	return ""
}

func predictLine(r Report) string {
	gpu, model := "h100-sxm", "Qwen/Qwen3-8B"
	if len(r.Accelerators) > 0 && len(r.Accelerators[0].Known) > 0 {
		gpu = r.Accelerators[0].Known[0]
	}
	if i := slices.IndexFunc(r.Models, func(m Model) bool { return m.Known }); i >= 0 {
		model = r.Models[i].ID
	}
	return fmt.Sprintf("perflab predict --gpu %s -- vllm serve %s", gpu, engine.Quote(model))
}

func selfcheckAbility(r Report) Ability {
	a := Ability{"selfcheck", Ready, "It has not been run with this version.", "perflab selfcheck"}
	if c := r.Client.SelfCheck; c != nil {
		a.Text, a.Try = fmt.Sprintf("Run on %s: tokens are stamped %.1f us off at p50, %.0f us at p99.", c.Taken.UTC().Format("2006-01-02"), c.ArrivalP50, c.ArrivalP99), ""
	}
	return a
}

// fewFiles is the limit on open files below which a load of some thousand streams is refused.
const fewFiles = 10_000

// goodClocks are the sources that a program reads without a call of the kernel.
var goodClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}

// missing says what would let perflab do more, the most useful first.
func missing(r Report) []Missing {
	var out []Missing
	add := func(needed bool, what, do string) {
		if needed {
			out = append(out, Missing{what, do})
		}
	}
	_, served := r.measurable()
	add(!served && r.usable() && len(r.startable()) == 0, "There is no server to measure, and no engine to start.",
		"Install one (pip install vllm; on processors llama.cpp's llama-server), or try everything on a simulated one, see sim above.")
	add(len(r.Accelerators) == 0 && r.why("accelerators") != "", "The accelerators cannot be asked: "+r.why("accelerators")+".", "See that nvidia-smi, amd-smi or npu-smi works in this shell.")
	for _, a := range r.Accelerators {
		add(len(a.Known) == 0, fmt.Sprintf("perflab has no figures of %s.", cmp.Or(a.Name, "a device without a name")), "It is measured as any other, but not predicted: perflab sim --list has what is known.")
	}
	for _, e := range r.Engines {
		add(!e.OnPath, fmt.Sprintf("%s is installed in %s, which is not what this shell starts.", e.Title, cmp.Or(e.Python, e.Path)), "Activate that environment before perflab tune.")
	}
	add(len(r.Accelerators) > 0 && r.Docker != nil && r.Accelerators[0].Platform == "cuda" && !r.Docker.GivesGPUs(), "Containers are given no GPU: Docker has no runtime nvidia.",
		"Install the NVIDIA container toolkit, if engines should run in containers.")
	add(r.Client.OpenFiles > 0 && r.Client.OpenFiles < fewFiles, fmt.Sprintf("A process may have %d files open, and each request in flight takes one.", r.Client.OpenFiles), "Raise the limit (ulimit -Hn) for loads of thousands of requests at once.")
	add(r.Client.ClockSource != "" && !slices.Contains(goodClocks, r.Client.ClockSource), fmt.Sprintf("The kernel's clock is %s, which is slow to read.", r.Client.ClockSource), "The usual one is tsc; perflab selfcheck measures what it costs.")
	add(r.Client.SelfCheck == nil && r.usable(), "How exact this machine's client is has not been measured.", "Run perflab selfcheck, half a minute on a quiet machine: later runs cite it.")
	return out
}

// why is the reason for which a check told nothing, "" where it told.
func (r Report) why(check string) string {
	for _, u := range r.Unanswered {
		if u.Check == check {
			return u.Why
		}
	}
	return ""
}
