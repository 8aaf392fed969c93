package lab

import (
	"context"
	"time"

	"perflab/internal/bench"
	"perflab/internal/candidate"
	"perflab/internal/deploy"
	"perflab/internal/durable"
	"perflab/internal/lab/prediction"
	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/result"
	"perflab/internal/selfcheck"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// Options say where and how a study runs.
type Options struct {
	Dir       string // study directory
	Resume    bool   // continue the study in Dir
	Version   string // of perflab
	Self      string // this program, started again for simulated engines
	APIKey    string
	Secrets   redact.Values   // that are known beside those of the study: none of them is stored
	Predictor bench.Predictor // for runtime kind predicted
	Watch     func(Status)    // told of every change, one at a time; may be nil
	Tell      func(string)    // told, a sentence each, what whoever waits for the study should read before its end; may be nil

	// Follow is given, once, what tells where the study stands at an instant; nil: nobody asks.
	Follow func(func(time.Time) outcome.Underway)
	Again  string // the command that goes on with the study, for who looks into its directory

	// Words writes the sentences of a study's findings, for study.json; nil: none are
	// written.
	Words func(outcome.Study) outcome.Study

	// Earlier reads the earlier studies that a study names; nil: there is nobody to.
	Earlier func(*study.Study) ([]outcome.Earlier, error)

	Fleet Fleet      // of runtime kind fleet; nil: there is none
	Crew  bench.Crew // sends the loads in place of this machine, from beside the engines; nil: nobody does

	disk    durable.Disk    // that the study's directory is on
	learned []byte          // earlier.json of a new study
	lengths []byte          // lengths.json of a new study
	nodes   []byte          // machines.json of a new study
	grace   time.Duration   // that an engine of runtime process has to end, 0: the runtime's
	fence   deploy.Fence    // of engines of runtime process
	pauses  []time.Duration // before each further try of what our machinery broke, nil: backoff

	strategist func(*study.Study, tune.Predictor) (tune.Strategy, *candidate.Field, error) // nil: the study's own
}

// session is a study that runs, or one of its machines: of several each has one of its own,
// which shares with the study what they have in common.
type session struct {
	*study.Study
	Options
	studyDir  *directory
	watch     *watcher
	underway  *underway
	engines   *launcher
	facts     *factsMaker
	strategy  tune.Strategy
	space     *candidate.Field  // of what may be tried; nil: the study lists it
	selfCheck *result.SelfCheck // of this client on this machine
	names     []string          // labels of what the study names; nil: not looked for yet
	past      history
	machine   string     // its name, of several
	gone      bool       // it could not be reached any more
	machines  []*session // on which trials run; of one machine the session itself
	ended     chan ended // trials that were measured
}

// history is what a session knows of the trials that have ended.
type history struct {
	ended    int
	trials   []trialRecord      // of before it was resumed
	based    bool               // the baseline was measured
	warned   string             // what was told last of what the study cannot tell
	baseline map[string]float64 // figures of the baseline's first trial, once it was measured
	stuck    error              // an engine of the machine that could not be stopped: nothing can be measured beside it
}

// newSession is a session without a directory and a strategy.
func newSession(s *study.Study, o Options) *session {
	if o.pauses == nil {
		o.pauses = backoff()
	}
	u := new(underway)
	w := &watcher{tell: func(s Status) {
		u.see(s)
		if o.Watch != nil {
			o.Watch(s)
		}
	}}
	l := &session{Study: s, Options: o, watch: w, underway: u, engines: newLauncher(s, o, w), selfCheck: selfcheck.Load(o.Version)}
	l.machines = l.onMachines()
	l.ended = make(chan ended, len(l.machines))
	l.facts = &factsMaker{Study: s, perflab: o.Version, engineVersion: l.engines.version, ground: &l.engines.ground}
	return l
}

// backoff is the pauses before further tries of what our own machinery broke.
func backoff() []time.Duration { return []time.Duration{time.Second, 5 * time.Second} }

// awaitEngineDeath returns why a run went wrong: ctx's cause, also if it comes in a
// moment, or else the run's own error, if any.
func (l *session) awaitEngineDeath(ctx context.Context, err error) error {
	if l.Attached() && l.Runtime.Service == "" && ctx.Err() == nil {
		return err // its end is never told
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(deathNotice):
		return err
	}
}

// deathNotice is how much later than its clients we may learn that an engine
// has ended: connections break first.
const deathNotice = 2 * time.Second

// predictorOf predicts for the study's search, and nothing where nobody can.
func predictorOf(ctx context.Context, l *session) tune.Predictor {
	if l.Predictor == nil || l.Strategy != study.Race {
		return study.NoPredictor{}
	}
	return prediction.New(ctx, l.Study, l.Predictor, func() {
		l.watch.change(func(s *Status) {
			s.Phase, s.Workload, s.Progress = PhaseRanking, "", nil
			s.Ranked++
		})
	})
}
