package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"perflab/internal/deploy"
)

// holder is whoever leads the node now, and what was started for it.
type holder struct {
	s       *server
	token   uint64
	who     string
	study   string
	session string // the leader's: see holdOrder
	since   time.Time
	lease   time.Duration
	ctx     context.Context // ends when it holds the node no more
	cancel  context.CancelCauseFunc
	heard   chan struct{}
	found   []leftover // of the holder before

	sweeping sync.Mutex
	unswept  error // why what earlier agents left in containers may be there still

	mu       sync.Mutex
	engines  map[int]*engine
	commands map[int]*command
	streams  map[int]*stream
	work     sync.WaitGroup // of all of them
}

// renew takes note that the holder was heard of.
func (h *holder) renew() {
	select {
	case h.heard <- struct{}{}:
	default: // it is noted
	}
}

// watch ends the holder when it was not heard of for its lease.
func (h *holder) watch() {
	t := time.NewTimer(h.lease)
	defer t.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-h.heard:
			t.Reset(h.lease)
		case <-t.C:
			h.s.log.Warn("the holder of the node was not heard of for its lease: what it started is ended", "who", h.who, "token", h.token)
			h.s.release(h, fmt.Errorf("its holder was not heard of for %v", h.lease))
			return
		}
	}
}

// lapseGrace is how long an engine has to end whose holder is gone.
const lapseGrace = 5 * time.Second

// end ends all that was started, and says which engines still ran.
func (h *holder) end(why error) []leftover {
	h.mu.Lock()
	h.cancel(why) // from here on nothing is started
	engines := make([]*engine, 0, len(h.engines))
	for _, e := range h.engines {
		engines = append(engines, e)
	}
	for _, x := range h.streams {
		x.close()
	}
	h.mu.Unlock()
	var out []leftover
	for _, e := range engines {
		if <-e.started; e.failed != nil {
			continue // it has left nothing
		}
		select {
		case <-e.Exited():
		default:
			out = append(out, leftover{e.marker, e.name})
		}
		e.end(lapseGrace)
	}
	for _, e := range engines {
		if e.failed != nil {
			continue
		}
		<-e.ended
		if e.wrong != nil {
			h.s.log.Warn("an engine could not be ended", "engine", e.name, "error", e.wrong)
		}
		_ = os.RemoveAll(e.dir) // what stays is found by nobody, and costs disk
	}
	h.work.Wait()
	return out
}

// add registers what is started for the holder, unless it is one no more. An older one of the number is given back.
func add[T any](h *holder, all map[int]T, number int, make func() (T, error)) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var none T
	if err := context.Cause(h.ctx); err != nil {
		return none, &FencedError{err.Error()}
	}
	if x, again := all[number]; again {
		return x, nil
	}
	x, err := make()
	if err == nil {
		all[number] = x
	}
	return x, err
}

// find is one of those that were started.
func find[T any](h *holder, all map[int]T, number int, what string) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x, ok := all[number]
	if !ok {
		return x, fmt.Errorf("there is no %s %d", what, number)
	}
	return x, nil
}

func (h *holder) forget(forget func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	forget()
}

// engine is a process that a holder started.
type engine struct {
	deploy.Running
	name, marker string
	argv         []string
	began        time.Time
	ports        []int
	dir, log     string

	started chan struct{} // closed when it runs, or failed
	failed  error

	stopping sync.Once
	hurrying sync.Once
	hurry    chan struct{}
	ended    chan struct{} // closed when nothing of it runs any more
	wrong    error         // or why it still does
	run      func(func())  // a goroutine of the holder's

	mu     sync.Mutex
	served []int // ports to which streams have led
}

func (h *holder) ports(o portsOrder) ([]int, error) {
	p, err := h.place(o.Start)
	if err != nil {
		return nil, err
	}
	return p.Ports(h.ctx, "", o.N)
}

// spawn starts a process, whose end is the holder's at the latest. Other orders go on meanwhile: a container takes its time.
func (h *holder) spawn(o spawnOrder) (deploy.Record, error) {
	if len(o.Argv) == 0 || o.Name != filepath.Base(o.Name) {
		return deploy.Record{}, fmt.Errorf("start %q: that is no process to start", o.Name)
	}
	mine := false
	e, err := add(h, h.engines, o.Number, func() (*engine, error) {
		mine = true
		return h.newEngine(o), nil
	})
	if err != nil {
		return deploy.Record{}, err
	}
	if mine {
		if e.failed = e.start(h, o); e.failed != nil {
			_ = os.RemoveAll(e.dir) // there is nothing in it
			h.forget(func() { delete(h.engines, o.Number) })
		}
		close(e.started)
	}
	if <-e.started; e.failed != nil {
		return deploy.Record{}, e.failed
	}
	return e.Record(), nil
}

// newEngine is one that is being started: an end of the holder waits for that.
func (h *holder) newEngine(o spawnOrder) *engine {
	dir := filepath.Join(h.s.o.Dir, "engines", fmt.Sprintf("%d-%d", h.token, o.Number))
	return &engine{
		name: o.Name, marker: o.Marker, argv: o.Argv, began: time.Now().UTC(), ports: o.Ports, dir: dir, log: filepath.Join(dir, o.Name+".log"),
		started: make(chan struct{}), hurry: make(chan struct{}), ended: make(chan struct{}), run: h.work.Go,
	}
}

// start starts the process.
func (e *engine) start(h *holder, o spawnOrder) error {
	p, err := h.place(o.Start)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(e.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	e.Running, err = p.Spawn(h.ctx, deploy.Job{
		Member: deploy.Member{Argv: o.Argv, Env: o.Env, Devices: o.Devices, Files: o.Files},
		Op:     o.Op, Name: o.Name, Marker: o.Marker, Ports: o.Ports, Visible: o.Visible, Dir: e.dir, Log: out,
	})
	if err == nil {
		h.s.log.Info("an engine was started", "name", o.Name, "dir", e.dir, "token", h.token)
	}
	return err
}

// engine is one that was started, once it has.
func (h *holder) engine(number int) (*engine, error) {
	e, err := find(h, h.engines, number, "engine")
	if err == nil {
		<-e.started
		err = e.failed
	}
	return e, err
}

// readLog gives what a process has printed, as soon as there is more.
func (h *holder) readLog(o logOrder) (logPart, error) {
	e, err := h.engine(o.Number)
	if err != nil {
		return logPart{}, err
	}
	f, err := os.Open(e.log)
	if err != nil {
		return logPart{}, err
	}
	defer f.Close()
	late := time.NewTimer(longPoll)
	defer late.Stop()
	b := make([]byte, frame)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		over := false
		select {
		case <-e.Exited(): // before the look: what it printed last is read
			over = true
		default:
		}
		n, err := f.ReadAt(b, o.From)
		if n > 0 {
			return logPart{Bytes: b[:n]}, nil
		}
		if over {
			text, code := e.Status()
			return logPart{Ended: true, Status: text, Code: code}, nil
		}
		select {
		case <-h.ctx.Done():
			return logPart{}, &FencedError{context.Cause(h.ctx).Error()}
		case <-late.C:
			return logPart{}, nil
		case <-e.Exited():
		case <-time.After(pause):
		}
		_ = err // the end of the file, for now
	}
}

// Pauses between two looks at a log.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 200 * time.Millisecond
)

// stop ends a process, and says when that is done.
func (h *holder) stop(o stopOrder) (stopped, error) {
	e, err := h.engine(o.Number)
	if err != nil {
		return stopped{}, err
	}
	e.end(o.Grace)
	if o.Hurry {
		e.hurrying.Do(func() { close(e.hurry) })
	}
	late := time.NewTimer(longPoll)
	defer late.Stop()
	select {
	case <-late.C:
		return stopped{}, nil
	case <-e.ended:
	}
	if o.Forget {
		h.forget(func() { delete(h.engines, o.Number) })
		_ = os.RemoveAll(e.dir) // what stays is found by nobody, and costs disk
	}
	return stopped{Done: true, Fault: faultOf(e.wrong)}, nil
}

// end begins to end the process.
func (e *engine) end(grace time.Duration) {
	e.stopping.Do(func() {
		e.run(func() {
			defer close(e.ended)
			if e.wrong = e.Stop(grace, e.hurry); e.wrong == nil {
				e.wrong = e.unserved()
			}
		})
	})
}

// serves takes note of a port to which a stream leads.
func (e *engine) serves(port int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.served, port) {
		e.served = append(e.served, port)
	}
}

// unserved says that somebody listens where the engine did, who was not known for a part of it. The leader, which sees
// ports of its own, cannot.
func (e *engine) unserved() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, port := range e.served {
		if err := deploy.Unserved("stop "+e.name, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			return err
		}
	}
	return nil
}

// command is a short one that a holder runs.
type command struct {
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	more  sync.Cond
	bytes []byte // not fetched yet
	ended bool
	err   error
	image string // that was made ready
}

// mostOutput is what of a command's output waits to be fetched, until the command waits.
const mostOutput = 8 * frame

// Write takes what a command prints, and keeps it waiting where nobody fetches that.
func (c *command) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.bytes) > mostOutput && !c.ended {
		c.more.Wait()
	}
	if c.ended {
		return 0, errors.New("nobody reads")
	}
	c.bytes = append(c.bytes, p...)
	c.more.Broadcast()
	return len(p), nil
}

// finish takes note of the command's end.
func (c *command) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.err == nil {
		c.err = err
	}
	c.more.Broadcast()
}

// run starts a command.
func (h *holder) run(o runOrder) (any, error) {
	if len(o.Argv) == 0 {
		return nil, errors.New("run nothing: that is no command")
	}
	return h.begin(o, func(ctx context.Context, p deploy.Place, c *command) error { return p.Command(ctx, "", o.Argv, c) })
}

// ready begins to make ready what engines need.
func (h *holder) ready(o runOrder) (any, error) {
	return h.begin(o, func(ctx context.Context, p deploy.Place, c *command) error {
		image, err := p.Prepare(ctx, func(text string) { _, _ = c.Write([]byte(text + "\n")) }) // nobody reads any more: ctx ends
		c.mu.Lock()
		defer c.mu.Unlock()
		c.image = image
		return err
	})
}

// begin begins what an order wants, whose output and end are fetched.
func (h *holder) begin(o runOrder, do func(context.Context, deploy.Place, *command) error) (any, error) {
	p, err := h.place(o.Start)
	if err != nil {
		return nil, err
	}
	_, err = add(h, h.commands, o.Number, func() (*command, error) {
		ctx, cancel := context.WithCancelCause(h.ctx)
		c := &command{cancel: cancel}
		c.more.L = &c.mu
		h.work.Go(func() {
			defer cancel(nil)
			stop := context.AfterFunc(ctx, func() { c.finish(context.Cause(ctx)) }) // who waits to write goes on
			defer stop()
			c.finish(do(ctx, p, c))
		})
		return c, nil
	})
	return nil, err
}

// output gives what a command has printed, as soon as there is something, and forgets one that has ended.
func (h *holder) output(o numbered) (output, error) {
	c, err := find(h, h.commands, o.Number, "command")
	if err != nil {
		return output{}, err
	}
	late := time.AfterFunc(longPoll, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.more.Broadcast()
	})
	defer late.Stop()
	begun := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.bytes) == 0 && !c.ended && time.Since(begun) < longPoll {
		c.more.Wait()
	}
	out := output{Bytes: c.bytes[:min(len(c.bytes), frame)]}
	c.bytes = c.bytes[len(out.Bytes):]
	c.more.Broadcast()
	if out.Ended = c.ended && len(c.bytes) == 0; out.Ended {
		out.Fault, out.Image = faultOf(c.err), c.image
	}
	return out, nil
}

// killCommand ends a command, and forgets it.
func (h *holder) killCommand(o numbered) (any, error) {
	c, err := find(h, h.commands, o.Number, "command")
	if err != nil {
		return nil, err
	}
	c.cancel(errors.New("its leader has ended it"))
	h.forget(func() { delete(h.commands, o.Number) })
	return nil, nil
}
