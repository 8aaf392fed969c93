package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"perflab/internal/deploy"
)

// holder is whoever leads the node now, and what was started for it.
type holder struct {
	s      *server
	token  uint64
	who    string
	study  string
	since  time.Time
	lease  time.Duration
	ctx    context.Context // ends when it holds the node no more
	cancel context.CancelCauseFunc
	heard  chan struct{}
	found  []leftover // of the holder before

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
		select {
		case <-e.Exited():
		default:
			out = append(out, leftover{e.marker, e.name})
		}
		e.end(lapseGrace)
	}
	for _, e := range engines {
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

	stopping sync.Once
	hurrying sync.Once
	hurry    chan struct{}
	ended    chan struct{} // closed when nothing of it runs any more
	wrong    error         // or why it still does
	run      func(func())  // a goroutine of the holder's
}

func (h *holder) ports(o portsOrder) ([]int, error) {
	return deploy.Process{}.Host().Ports(h.ctx, "", o.N)
}

// spawn starts a process, whose end is the holder's at the latest.
func (h *holder) spawn(o spawnOrder) (deploy.Record, error) {
	e, err := add(h, h.engines, o.Number, func() (*engine, error) { return h.newEngine(o) })
	if err != nil {
		return deploy.Record{}, err
	}
	return e.Record(), nil
}

// newEngine starts a process. It is called with the holder locked, so that no end passes it by.
func (h *holder) newEngine(o spawnOrder) (*engine, error) {
	if len(o.Argv) == 0 || o.Name != filepath.Base(o.Name) {
		return nil, fmt.Errorf("start %q: that is no process to start", o.Name)
	}
	dir := filepath.Join(h.s.o.Dir, "engines", fmt.Sprintf("%d-%d", h.token, o.Number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	e := &engine{
		name: o.Name, marker: o.Marker, argv: o.Argv, began: time.Now().UTC(), ports: o.Ports, dir: dir, log: filepath.Join(dir, o.Name+".log"),
		hurry: make(chan struct{}), ended: make(chan struct{}), run: h.work.Go,
	}
	out, err := os.OpenFile(e.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		defer out.Close()
		e.Running, err = h.host(o.Start).Spawn(h.ctx, deploy.Job{
			Member: deploy.Member{Argv: o.Argv, Env: o.Env, Devices: o.Devices, Files: o.Files},
			Op:     o.Op, Name: o.Name, Marker: o.Marker, Ports: o.Ports, Visible: o.Visible, Dir: dir, Log: out,
		})
	}
	if err != nil {
		_ = os.RemoveAll(dir) // there is nothing in it
		return nil, err
	}
	h.s.log.Info("an engine was started", "name", o.Name, "dir", dir, "token", h.token)
	return e, nil
}

// host starts processes of this machine.
func (h *holder) host(s Settings) deploy.Host {
	return deploy.Process{Dir: s.Dir, Limits: s.Limits}.Host()
}

// readLog gives what a process has printed, as soon as there is more.
func (h *holder) readLog(o logOrder) (logPart, error) {
	e, err := find(h, h.engines, o.Number, "engine")
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
	e, err := find(h, h.engines, o.Number, "engine")
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
	if e.wrong != nil {
		return stopped{Done: true, Error: e.wrong.Error()}, nil
	}
	return stopped{Done: true}, nil
}

// end begins to end the process.
func (e *engine) end(grace time.Duration) {
	e.stopping.Do(func() {
		e.run(func() {
			defer close(e.ended)
			e.wrong = e.Stop(grace, e.hurry)
		})
	})
}

// command is a short one that a holder runs.
type command struct {
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	more  sync.Cond
	bytes []byte // not fetched yet
	ended bool
	err   error
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
	_, err := add(h, h.commands, o.Number, func() (*command, error) {
		ctx, cancel := context.WithCancelCause(h.ctx)
		c := &command{cancel: cancel}
		c.more.L = &c.mu
		h.work.Go(func() {
			defer cancel(nil)
			stop := context.AfterFunc(ctx, func() { c.finish(context.Cause(ctx)) }) // who waits to write goes on
			defer stop()
			c.finish(deploy.Process{Dir: o.Dir}.Command(ctx, "", o.Argv, c))
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
		out.Fault = faultOf(c.err)
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
