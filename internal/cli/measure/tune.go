package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"perflab/docs"
	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/cli/library"
	"perflab/internal/cli/machines"
	"perflab/internal/dirdoc"
	"perflab/internal/engine"
	"perflab/internal/lab"
	"perflab/internal/outcome"
	"perflab/internal/replay"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/finding"
	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/source"
	"perflab/internal/study"
	"perflab/internal/tune"
)

type tuneFlags struct {
	push   library.Push
	made   string // the study directory, once it is known
	out    string
	how    string // strategy
	resume bool
	schema bool
	check  bool
	learn  []string // paths of earlier studies
	hub    machines.Hub
}

const tuneLong = `Find the serving command that is fastest for a workload, or cheapest, or
within its latency bounds, and show that it is better: from a study file with a
baseline, a load and an objective to a recommended command and a report that says
how sure it is.

By default configurations of the engines' catalogue race: engines, checkpoints and
layouts that fit the hardware. First what the study names is launched, then each
engine and each checkpoint once, then whatever a launch is expected to gain most by;
perflab's simulator predicts, and the study's own launches correct it. Then what
leads and the baseline are launched again, interleaved and on fresh seeds, until the
gain is shown or none is to be expected any more; a second configuration is only
where it may be the better one. Only these launches decide: better, no difference
shown, or a budget too small to tell. In the end the settings of the winner that
likely bring nothing are left out together, and the command without them is
recommended if its own launches show that it is no worse. --check prints what would
be raced, whether the budget has a launch for all that the study names, and what is
found of the hardware where it is this machine's. With runtime predicted nothing is
launched: the search goes on by prediction, and the report says how far predictions
are off.

Other strategies (strategy: in the file, or --strategy): staged carries the best of
each listed stage forward, survey measures a list of candidates under every workload,
random, grid and tpe draw from the same space as race.

While it runs it shows which launch is under way and why, how far its load is, how
long the study may still take, and what leads so far; perflab status DIR says the
same from another terminal.

With runtime fleet the engines run on machines where perflab agent --engines does, found
through the hub (--hub), a trial on each at the same time.

A study directory holds study.json (every fact), report.md, report.html, plots/,
the journal, and one directory per trial with its runs and the engine's log.

An interrupted study, even one killed, goes on with --resume (and the same
--strategy): trials that ended are not repeated. A record of the journal, or a file
of a trial's runs, that was changed or lost since is named, and nothing goes on
until it is put back or its record is removed, to be measured again.`

// NewTune is perflab tune: a study from its file to its report.
func NewTune(env console.Env) *cobra.Command {
	f := &tuneFlags{}
	c := &cobra.Command{
		Use:   "tune STUDY.yaml",
		Short: "From a study file to a recommended serving command and a report",
		Long:  tuneLong,
		Example: `  perflab tune examples/quickstart.yaml
  perflab tune examples/qwen3-32b-h100.yaml --check
  perflab tune examples/qwen3-32b-h100.yaml --out h100
  perflab tune examples/qwen3-32b-h100.yaml --out h100 --resume
  perflab tune --schema > study.schema.json`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.schema {
				_, err := env.Stdout.Write(docs.StudySchema)
				return err
			}
			if len(args) != 1 {
				return console.Usage(errors.New("perflab tune needs one study file (examples/ has some; see perflab tune --help)"))
			}
			return f.push.After(c.Context(), env, func() error { return runTune(c.Context(), env, f, args[0]) }, func() []string { return []string{f.made} })
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.out, "out", "", "study directory (default perflab-out/NAME, or NAME-2 ... beside a finished one)")
	f.push.Add(fs)
	fs.BoolVar(&f.resume, "resume", false, "continue the study in the study directory")
	fs.StringVar(&f.how, "strategy", "", "search by this strategy in place of the file's: "+strings.Join(study.Strategies(), ", "))
	fs.StringArrayVar(&f.learn, "earlier", nil, "study directory, runs or another client's results that direct the search and confirm nothing, beside those of the file (repeatable)")
	f.hub.Add(fs)
	fs.BoolVar(&f.check, "check", false, "check the study file and this machine's hardware, say what would be raced, and stop")
	fs.BoolVar(&f.schema, "schema", false, "print the JSON Schema of study files and stop")
	return c
}

func runTune(ctx context.Context, env console.Env, f *tuneFlags, path string) error {
	content, err := study.ReadFile(path)
	if err != nil {
		return console.Usage(fmt.Errorf("read the study: %w", err))
	}
	if f.how != "" && !slices.Contains(study.Strategies(), f.how) {
		return console.Usage(fmt.Errorf("--strategy %q is not known: use %s", f.how, strings.Join(study.Strategies(), ", ")))
	}
	s, err := study.ParseAs(path, content, f.how)
	if err != nil {
		return err
	}
	if err := s.LearnFrom(f.learn); err != nil {
		return console.Usage(err)
	}
	env = env.WithSecrets(s.Secrets())
	if f.check {
		return checkStudy(ctx, env, path, s)
	}
	nodes, crew, leave, err := f.meet(ctx, env, s)
	if err != nil {
		return err
	}
	defer leave()
	dir := f.dir(s.Name)
	f.made = dir
	w := &tuneView{started: time.Now()}
	w.live = console.StartLive(env, w.text, w.panel)
	for _, r := range s.Remarks() {
		w.live.Say("warning: %s", r)
	}
	facts, err := lab.Tune(ctx, s, content, lab.Options{
		Dir: dir, Resume: f.resume, Version: env.Version, Self: env.Self,
		APIKey: env.Getenv("OPENAI_API_KEY"), Secrets: env.Secrets, Predictor: replay.Predictor{}, Watch: w.watch, Follow: w.follow, Again: f.again(path, dir), Words: finding.Worded, Earlier: source.Earlier, Fleet: nodes, Crew: crew,
		Tell: func(text string) { w.live.Say("warning: %s", text) },
	})
	w.live.End()
	if facts.Schema == "" {
		return err // it never began
	}
	if err != nil {
		err = console.Stopped(err, keptTrials(len(facts.Trials)))
	}
	d, rerr := writeStudyReport(env, dir, facts)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if terr := doc.Text(env.Stdout, d); terr != nil {
		return errors.Join(err, terr)
	}
	fmt.Fprintf(env.Stdout, "Report: %s\n", filepath.Join(dir, "report.html"))
	return cmp.Or(err, judgeStudy(facts))
}

// meet finds the machines of a study of runtime fleet, or starts the agents that send the loads of one in a cluster.
func (f *tuneFlags) meet(ctx context.Context, env console.Env, s *study.Study) (nodes lab.Fleet, crew bench.Crew, leave func(), err error) {
	if agents := s.LoadAgents(); agents != nil {
		pods, _, leave, err := f.hub.Pods(ctx, env, *s.Runtime.Kubernetes, *agents)
		if err != nil {
			return nil, nil, nil, err
		}
		return nil, pods, leave, nil
	}
	if s.Runtime.Kind != study.Fleet {
		if f.hub.Given() {
			return nil, nil, nil, console.Usage(fmt.Errorf("--hub says where a fleet meets, and the study's runtime is %s: set runtime.kind to fleet, give kind kubernetes or a service its load, or leave --hub out", s.Runtime.Kind))
		}
		return nil, nil, func() {}, nil
	}
	l, stop, err := f.hub.Lead(ctx, env)
	if err != nil {
		return nil, nil, nil, err
	}
	all := l.Nodes(s.Name)
	return all, nil, func() {
		all.Close()
		stop()
	}, nil
}

// dir is the study directory: --out, or perflab-out/NAME. A finished study of
// that name is left alone and NAME-2, NAME-3 ... taken; one that was stopped is
// not, since --resume is then the likelier wish.
func (f *tuneFlags) dir(name string) string {
	if f.out != "" {
		return f.out
	}
	dir := filepath.Join("perflab-out", name)
	for i := 2; !f.resume; i++ {
		if s, err := rundir.OpenStudy(dir); err != nil || s.Partial {
			break
		}
		dir = filepath.Join("perflab-out", fmt.Sprintf("%s-%d", name, i))
	}
	return dir
}

// again is the command that goes on with the study in a directory.
func (f *tuneFlags) again(path, dir string) string {
	words := []string{"perflab tune", engine.Quote(path), "--out", engine.Quote(dir), "--resume"}
	if f.how != "" {
		words = append(words, "--strategy", f.how)
	}
	for _, p := range f.learn {
		words = append(words, "--earlier", engine.Quote(p))
	}
	for _, w := range f.hub.Words() {
		words = append(words, engine.Quote(w))
	}
	return strings.Join(words, " ")
}

// keptTrials says what an interrupted study leaves.
func keptTrials(n int) string {
	switch n {
	case 0:
		return "no trial had ended; --resume begins with the first one"
	case 1:
		return "the one trial that ended is kept; --resume continues"
	}
	return fmt.Sprintf("the %d trials that ended are kept; --resume continues", n)
}

// Errors that end a study which has nothing to recommend.
var (
	errNothing = errors.New("no configuration could be measured: the report names each one's reason")
	errUnfit   = errors.New("no configuration is recommended, though some were measured: the report says why")
)

// judgeStudy decides the exit status of a study that came to its end.
func judgeStudy(s outcome.Study) error {
	if s.Recommended == nil || s.Recommended.Summary == nil {
		if slices.ContainsFunc(s.Trials, func(t outcome.Trial) bool { return t.Status == tune.Measured }) {
			return errUnfit
		}
		return errNothing
	}
	var base result.Summary
	if s.Baseline != nil && s.Baseline.Summary != nil {
		base = *s.Baseline.Summary
	}
	var missed []string
	for _, text := range s.Objective.SLOs {
		b, err := study.ParseBound(text)
		if err != nil {
			return err
		}
		if met, why := b.Judge(*s.Recommended.Summary, base); !met {
			missed = append(missed, why)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w: no configuration meets every SLO: %s", console.ErrMissed, strings.Join(missed, "; "))
	}
	return nil
}

// writeStudyReport renders the facts beside study.json.
func writeStudyReport(env console.Env, dir string, s outcome.Study) (doc.Document, error) {
	o := dirdoc.StudyOptions(dir, s, "")
	d, err := report.Study(s, o)
	var md, html strings.Builder
	if err == nil {
		err = errors.Join(doc.Markdown(&md, d), doc.HTML(&html, d))
	}
	if err != nil {
		return d, fmt.Errorf("render the report: %w", err)
	}
	files := map[string]string{"report.md": md.String(), "report.html": html.String()}
	for _, p := range append(report.Plots(s), o.Extra...) {
		files[filepath.Join("plots", p.Name+".svg")] = p.SVG
	}
	for name, text := range files {
		if err := env.WriteText(filepath.Join(dir, name), func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return d, err
		}
	}
	return d, nil
}

// tuneView is the live lines of a study, and a line that stays whenever a trial ends or another
// configuration leads.
type tuneView struct {
	live    *console.Live
	started time.Time
	ranked  bool   // was said, once: the search predicts on, but ranks no more
	leads   string // said last

	mu   sync.Mutex // guards what follows: set by the study, read by the live lines
	last map[string]lab.Status
	now  func(time.Time) outcome.Underway // nil: the study has not begun
}

// leastReportedPredictions is how many predictions leave a line behind: those that rank the
// field, not the few that a step of the search asks for.
const leastReportedPredictions = 10

func (v *tuneView) follow(now func(time.Time) outcome.Underway) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = now
}

// standing is where the study stands: before it has begun, what is predicted for it.
func (v *tuneView) standing() outcome.Underway {
	v.mu.Lock()
	now, ranked := v.now, v.last[""].Ranked
	v.mu.Unlock()
	if now == nil {
		return outcome.Underway{Started: v.started, At: time.Now(), Ranked: ranked}
	}
	return now(time.Now())
}

func (v *tuneView) watch(s lab.Status) {
	v.mu.Lock()
	if v.last == nil {
		v.last = map[string]lab.Status{}
	}
	before := v.last[s.Machine]
	v.last[s.Machine] = s
	v.mu.Unlock()
	if before.Phase == lab.PhaseRanking && s.Phase != lab.PhaseRanking && before.Ranked >= leastReportedPredictions && !v.ranked {
		v.ranked = true
		v.live.Say("ranked configurations by %d predictions (SIMULATED)", before.Ranked)
	}
	if s.Ended > before.Ended && before.Trial == s.Trial {
		v.live.Say("trial %d%s  %s: %s  %s", s.Trial, onMachine(s), s.Stage, s.Label, s.Result)
	}
	if l := v.standing().Leader; l != nil && !l.Baseline && l.Label != v.leads {
		v.leads = l.Label
		v.live.Say("%s", progress.Leader(l))
	}
}

func (v *tuneView) text() string { return progress.StudyLine(v.standing()) }

func (v *tuneView) panel(time.Time) []string { return progress.Study(v.standing()) }

// onMachine says on which of several machines a trial is.
func onMachine(s lab.Status) string {
	if s.Machine == "" {
		return ""
	}
	return " on " + s.Machine
}
