package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/redact"
)

// KeeperProcess is a process under a Keeper. It is a Running but for URL.
type KeeperProcess struct {
	keeper     Keeper
	node       string
	session    *keeperSession
	log        *os.File
	servedPort atomic.Int64 // port that must not be served after Stop; 0: none

	dir, started, refused chan string   // what the script says, once
	exited                chan struct{} // closed when the process has ended, or is out of reach
	done                  chan struct{} // closed when the script has ended it
	quit                  chan struct{} // closed when nothing is to be said any more
	running               sync.WaitGroup

	mu         sync.Mutex
	status     string
	code       int
	lost       bool
	record     Record
	survivors  []string
	portServed bool
}

// Spawn starts a process.
func (k Keeper) Spawn(ctx context.Context, j Job) (*KeeperProcess, error) {
	op := j.Op + onNode(j.Node)
	log, err := logOf(j)
	if err != nil {
		return nil, fileError(j.Op, err)
	}
	c := &KeeperProcess{
		keeper: k, node: j.Node, log: log,
		dir: make(chan string, 1), started: make(chan string, 1), refused: make(chan string, 1),
		exited: make(chan struct{}), done: make(chan struct{}), quit: make(chan struct{}),
		record: Record{Name: j.Name, Node: j.Node, Marker: j.Marker, Argv: redact.Argv(j.Argv)},
	}
	c.session, err = k.open(ctx, j.Node, "keep", c.record, cmp.Or(k.Grace, defaultGrace), bestEffortWriter{log}, nil, c.handleLine)
	if err != nil {
		log.Close()
		return nil, asInfra(ctx, op, err)
	}
	c.running.Go(c.watch)
	if err := c.start(ctx, op, j); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// bestEffortWriter writes what can be written: a disk that is full costs the log, and neither the
// engine nor the connection that the log comes through.
type bestEffortWriter struct{ io.Writer }

func (w bestEffortWriter) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
}

// start sends the job and waits until it runs.
func (c *KeeperProcess) start(ctx context.Context, op string, j Job) error {
	dir, err := c.awaitReply(ctx, op, j, c.dir)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.record.Dir = dir
	c.mu.Unlock()
	j.Member = j.In(dir + "/files")
	env := slices.Concat([]string{"SPT_NOENV=1"}, j.Env) // see local.spawn
	if visible, ok := j.VisibleEnv(); ok {
		env = append(env, visible)
	}
	text, err := jobText(c.keeper.Dir, j.Argv[0], c.keeper.Limits.wrap(j.Argv), append(env, j.Marker), j.Files)
	if err != nil {
		return &InfraError{Op: op, Err: err}
	}
	if err := c.session.sendJob(text); err != nil {
		return asInfra(ctx, op, c.session.failure(err))
	}
	c.running.Go(c.heartbeat) // not before: what is said until here is the job
	id, err := c.awaitReply(ctx, op, j, c.started)
	if err != nil {
		return err
	}
	f := append(strings.Fields(id), "", "", "")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.PID, _ = strconv.Atoi(f[0])
	c.record.Start, _ = strconv.ParseUint(f[1], 10, 64)
	c.record.Boot = f[2]
	return nil
}

// awaitReply waits for a word of the script: as long as on any machine, however soon
// silence means that it is lost later.
func (c *KeeperProcess) awaitReply(ctx context.Context, op string, j Job, word <-chan string) (string, error) {
	limit := max(c.keeper.silence(), defaultSilence)
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case text := <-word:
		return text, nil
	case why := <-c.refused:
		return "", refusedBy(op, j.Node, j.Argv[0], why)
	case <-c.session.ended:
		select {
		case why := <-c.refused:
			return "", refusedBy(op, j.Node, j.Argv[0], why)
		default:
		}
		return "", asInfra(ctx, op, c.session.failure(errors.New("the session ended before it had begun: is /bin/sh there, and is the account allowed to run it?")))
	case <-late.C:
		return "", asInfra(ctx, op, fmt.Errorf("no answer within %v", limit))
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// handleLine takes note of what the script says.
func (c *KeeperProcess) handleLine(line string) {
	word, rest, _ := strings.Cut(line, " ")
	once := func(ch chan string) {
		select {
		case ch <- rest:
		default:
		}
	}
	switch word {
	case "dir":
		once(c.dir)
	case "started":
		once(c.started)
	case "refused":
		once(c.refused)
	case "exit":
		code, err := strconv.Atoi(rest)
		if err != nil {
			code = -1
		}
		c.markExited(exitStatus(code))
	case "left":
		c.mu.Lock()
		c.survivors = append(c.survivors, describeRemote(rest))
		c.mu.Unlock()
	case "served":
		c.mu.Lock()
		c.portServed = true
		c.mu.Unlock()
	case "done":
		c.markExited("status unknown", -1)
		closeOnce(c.done)
	}
}

// markExited takes note of the end, the first time.
func (c *KeeperProcess) markExited(status string, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.exited:
	default:
		c.status, c.code = status, code
		close(c.exited)
	}
}

// watch waits for the session's end, which is the end of what is known of the
// process.
func (c *KeeperProcess) watch() {
	<-c.session.ended
	select {
	case <-c.done:
		return
	default:
	}
	c.mu.Lock()
	c.lost = true
	c.mu.Unlock()
	status := "connection" + c.toNode() + " lost"
	if c.session.err != nil {
		status += ": " + c.session.err.Error()
	}
	c.markExited(status, -1)
}

func (c *KeeperProcess) toNode() string {
	if c.node == "" {
		return ""
	}
	return " to " + c.node
}

// heartbeat shows the script that perflab is there, and cuts a session that is silent.
func (c *KeeperProcess) heartbeat() {
	every := time.NewTicker(c.keeper.silence() / 4)
	defer every.Stop()
	for {
		if c.session.silentFor() > c.keeper.silence() {
			_ = c.session.Close()
			return
		}
		if err := c.session.send("beat\n"); err != nil {
			return // watch sees why
		}
		select {
		case <-every.C:
		case <-c.quit:
			return
		case <-c.session.ended:
			return
		}
	}
}

// Exited is closed when the process has ended, or the connection is lost.
func (c *KeeperProcess) Exited() <-chan struct{} { return c.exited }

// Status is "exit status 1", "signal: killed" or "connection to HOST lost".
func (c *KeeperProcess) Status() (string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, c.code
}

// Record holds the process's identity over there and its directory.
func (c *KeeperProcess) Record() Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Record{identity: c.record.identity, Dir: c.record.Dir}
}

// Serves says which port the process serves: Stop fails when that is still served
// afterwards.
func (c *KeeperProcess) Serves(port int) { c.servedPort.Store(int64(port)) }

// Stop has the script end the process and all that it started. Out of reach, the process
// is looked for through a new session.
func (c *KeeperProcess) Stop(grace time.Duration, hurry <-chan struct{}) error {
	defer c.end()
	err := c.session.send(fmt.Sprintf("stop %s %d\n", milliseconds(grace), c.servedPort.Load()))
	limit := time.NewTimer(grace + killWait + c.keeper.silence())
	defer limit.Stop()
	for err == nil {
		select {
		case <-c.done:
			return c.stopResult()
		case <-hurry:
			hurry = nil
			err = c.session.send("kill\n")
			continue
		case <-c.session.ended:
		case <-limit.C:
		}
		break
	}
	select {
	case <-c.done:
		return c.stopResult()
	default:
		return c.stopByNewSession()
	}
}

// stopResult says what the script could not do.
func (c *KeeperProcess) stopResult() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.survivors) > 0 {
		return fmt.Errorf("%s does not end after SIGKILL%s", c.survivors[0], onNode(c.node))
	}
	if c.portServed {
		return &InfraError{
			Op:   "stop " + c.record.Name,
			Err:  fmt.Errorf("port %d%s is still served although every process of the engine has ended", c.servedPort.Load(), onNode(c.node)),
			Help: "a process that the engine started has left its group, session and environment: find it there with ss -ltnp, and end it",
		}
	}
	return nil
}

// stopByNewSession ends the process through a new session.
func (c *KeeperProcess) stopByNewSession() error {
	c.session.cut()
	c.mu.Lock()
	r := c.record
	c.mu.Unlock()
	_, left, err := c.keeper.end(context.Background(), r)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s does not end after SIGKILL", left[0])
	}
	if err == nil {
		return nil
	}
	return &InfraError{
		Op: "stop " + r.Name,
		Err: fmt.Errorf("%s is out of reach with process %d in %s: %w",
			cmp.Or(c.node, "the machine"), r.PID, cmp.Or(r.Dir, "no directory"), err),
		Help: fmt.Sprintf("perflab's keeper over there ends it within %v; when the machine can be reached, the next start looks for it and ends what is left", c.keeper.silence()+cmp.Or(c.keeper.Grace, defaultGrace)),
	}
}

// end ends the session and waits for its goroutines.
func (c *KeeperProcess) end() {
	closeOnce(c.quit)
	c.session.close()
	c.running.Wait()
	c.log.Close()
}
