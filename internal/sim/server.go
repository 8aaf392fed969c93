package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"perflab/internal/engine"
	"perflab/internal/stat"
)

// ServerOptions are what a server needs besides its core.
type ServerOptions struct {
	Log             io.Writer     // the engine's log; nil for none
	StartupDelay    time.Duration // /health answers 503 this long
	ReasoningParser string        // not empty: chat answers begin with reasoning
	APIKey          string        // not empty: who does not bring it is refused
	Guesses         string        // "summary" or "detailed": vLLM's answers tell of their request's speculation
	Notes           []string      // lines at the head of the log
	Spans           io.Writer     // gets a line of OTLP/JSON for each request with a trace context; nil: nobody wants them

	// Questions are answered as Declared says, in prompts that hold one, and texts
	// differ from those of other numerics as it says. The zero values are an engine that
	// knows none, and whose text follows from the prompt alone.
	Questions []Question
	Declared  stat.Declared
}

// Server is an engine in real time: one goroutine (Run) steps it and
// waits until each step's virtual end, HTTP handlers submit jobs and stream
// what comes out. Virtual time 0 is the moment the server becomes ready, and
// steps end on that absolute schedule: a late one does not delay the next.
type Server struct {
	cfg       engine.Config
	name      string   // of the model, as clients must spell it
	aliases   []string // further names that they may use
	apiKey    string
	notes     []string
	quoted    string // name as JSON
	reasoning bool
	guesses   string
	delay     time.Duration
	log       io.Writer
	spans     *spanLog // nil: nobody wants spans
	quiz      *quiz    // nil: it knows no question
	declared  stat.Declared
	mux       *http.ServeMux
	wake      chan struct{} // capacity 1: a job has been submitted
	stopped   chan struct{} // closed when Run has ended

	mu      sync.Mutex // guards everything below
	ready   bool
	epoch   time.Time // of virtual time 0
	core    Engine
	nextJob int
	streams map[int]*stream
	meters  meters
}

// stream carries one job's output from the engine goroutine to its handler.
type stream struct {
	arrive time.Duration
	last   time.Duration // of the last output; guarded by Server.mu
	wake   chan struct{} // capacity 1: queue is not empty
	mu     sync.Mutex
	queue  []Progress
}

// NewServer builds a server over an engine, which it owns from now on. It answers
// nothing but 503 until Run has got through the start-up delay.
func NewServer(core Engine, o ServerOptions) *Server {
	s := &Server{
		cfg: core.Config(), reasoning: o.ReasoningParser != "", guesses: o.Guesses, delay: o.StartupDelay, log: o.Log,
		aliases: core.Config().Aliases, apiKey: o.APIKey, notes: o.Notes,
		core: core, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		streams: map[int]*stream{}, quiz: newQuiz(o.Questions), declared: o.Declared,
	}
	s.name = s.cfg.ServedName
	if s.name == "" {
		s.name = s.cfg.Model.Name
	}
	quoted, err := json.Marshal(s.name)
	if err != nil {
		panic("sim: " + err.Error()) // a string can be marshalled
	}
	s.quoted = string(quoted)
	if s.log == nil {
		s.log = io.Discard
	}
	if o.Spans != nil {
		s.spans = &spanLog{w: o.Spans}
	}
	s.meters.init()
	s.routes()
	return s
}

// Run starts up and then steps the engine until ctx is cancelled, whose cause
// it returns. Handlers that are still streaming then break their connections,
// as those of a dying engine do. Run must be called once.
func (s *Server) Run(ctx context.Context) error {
	defer close(s.stopped)
	if err := s.startUp(ctx); err != nil {
		return err
	}
	lines := newStatusLog(s)
	for {
		s.mu.Lock()
		at, ok := s.core.Next()
		s.mu.Unlock()
		if !ok {
			select {
			case <-s.wake:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		if woken, err := s.waitUntil(ctx, at, s.wake); err != nil {
			return err
		} else if woken { // another arrival changes when the front end is done
			continue
		}
		s.mu.Lock()
		step, ok := s.core.Step()
		s.mu.Unlock()
		if !ok {
			continue
		}
		if _, err := s.waitUntil(ctx, step.End, nil); err != nil {
			return err
		}
		late := time.Since(s.epoch) - step.End
		lines.after(step, late, s.deliver(step, late))
	}
}

// startUp prints what the engine prints while it loads, spread over the delay.
func (s *Server) startUp(ctx context.Context) error {
	fmt.Fprintln(s.log, "SIMULATED engine, no GPU is used")
	for _, note := range s.notes {
		fmt.Fprintln(s.log, note)
	}
	lines := startupLog(s.cfg)
	start := time.Now()
	for i, line := range lines {
		at := s.delay * time.Duration(i+1) / time.Duration(len(lines))
		if err := sleep(ctx, at-time.Since(start)); err != nil {
			return err
		}
		fmt.Fprintln(s.log, line)
	}
	if err := sleep(ctx, s.delay-time.Since(start)); err != nil {
		return err
	}
	s.mu.Lock()
	s.ready, s.epoch = true, time.Now()
	s.mu.Unlock()
	return nil
}

// startupLog is what one engine prints, or one of each pool.
func startupLog(cfg engine.Config) []string {
	if cfg.Prefill == nil {
		return startup(cfg)
	}
	lines := append([]string{fmt.Sprintf("SIMULATED prefill engine, one of %d:", cfg.Prefills)}, startup(*cfg.Prefill)...)
	lines = append(lines, fmt.Sprintf("SIMULATED decode engine, one of %d:", cfg.Decodes))
	return append(lines, startup(cfg)...)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitUntil waits until the virtual time at, or until wake (which may be nil).
func (s *Server) waitUntil(ctx context.Context, at time.Duration, wake <-chan struct{}) (woken bool, err error) {
	d := at - time.Since(s.epoch)
	if d <= 0 {
		return false, context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false, nil
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// deliver hands a step's output to the streams and returns the engine's state.
func (s *Server) deliver(step *Step, late time.Duration) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meters.behind = max(0, late)
	s.meters.worst = max(s.meters.worst, late)
	for _, p := range step.Progress {
		st := s.streams[p.Index]
		if st == nil {
			continue // cancelled while the step ran
		}
		s.meters.observe(st, p)
		st.last = p.At
		st.mu.Lock()
		st.queue = append(st.queue, p)
		st.mu.Unlock()
		select {
		case st.wake <- struct{}{}:
		default:
		}
	}
	return s.core.Stats()
}

// take moves what has come into buf, waiting for something to come.
func (s *Server) take(ctx context.Context, st *stream, buf []Progress) ([]Progress, error) {
	select {
	case <-st.wake:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.stopped:
		return nil, http.ErrAbortHandler
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	buf = append(buf[:0], st.queue...)
	st.queue = st.queue[:0]
	return buf, nil
}

// now is the wall offset since virtual time 0; ok is false while loading.
func (s *Server) now() (at time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.epoch), s.ready
}

// submit puts a job into the engine and returns its stream. done must be
// called when the handler ends, however it ends.
func (s *Server) submit(arrive time.Duration, prompt []uint32, output int) (st *stream, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := s.nextJob
	s.nextJob++
	j := Job{Index: index, Arrive: arrive, Prompt: prompt, Output: output}
	if err := s.core.check(j); err != nil {
		return nil, nil, err
	}
	arrive = s.core.put(j, Outcome{}) // later if the engine had gone on
	st = &stream{arrive: arrive, last: arrive, wake: make(chan struct{}, 1)}
	s.streams[index] = st
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return st, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, index)
		s.core.cancel(index, time.Since(s.epoch)) // does nothing when the job has finished
	}, nil
}

// statusLog prints the engine's periodic line while it works, and says when
// the simulator cannot keep up.
type statusLog struct {
	s      *Server
	at     time.Duration // of the last line
	last   Stats
	warned time.Duration
}

const (
	statusEvery = 10 * time.Second
	tolerable   = 50 * time.Millisecond // lateness that scheduling noise explains
)

func newStatusLog(s *Server) *statusLog { return &statusLog{s: s, warned: -statusEvery} }

func (l *statusLog) after(step *Step, late time.Duration, now Stats) {
	if late > tolerable && step.End-l.warned >= statusEvery {
		l.warned = step.End
		fmt.Fprintf(l.s.log, "WARNING SIMULATED engine is %.3f s behind real time: latencies measured now are this machine's, not the engine's\n", late.Seconds())
	}
	passed := step.End - l.at
	if passed < statusEvery {
		return
	}
	in := float64(now.PromptTokens-l.last.PromptTokens) / passed.Seconds()
	out := float64(now.GenerationTokens-l.last.GenerationTokens) / passed.Seconds()
	switch l.s.cfg.Engine {
	case "sglang":
		fmt.Fprintf(l.s.log, "Decode batch, #running-req: %d, #token: %d, token usage: %.2f, cuda graph: %s, gen throughput (token/s): %.2f, #queue-req: %d\n",
			now.Running, int(now.KVUsage*float64(now.KVBlocks*l.s.cfg.Block)), now.KVUsage, title(now.Running <= l.s.cfg.GraphMax), out, now.Waiting)
	case "trtllm":
		fmt.Fprintf(l.s.log, "[TRT-LLM] [I] iter = %d, num_scheduled_requests: %d\n", now.Steps, now.Running)
	default:
		fmt.Fprintf(l.s.log, "INFO [loggers.py] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%\n",
			in, out, now.Running, now.Waiting, 100*now.KVUsage, 100*share(now.PrefixHits, now.PrefixQueries))
	}
	l.at, l.last = step.End, now
}

// title is a truth value as Python prints it.
func title(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
