package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"perflab/internal/engine/logs"
)

// inUse is how engines say that they cannot bind.
var inUse = regexp.MustCompile(`(?im)^.*(?:address already in use|EADDRINUSE|couldn't bind HTTP server socket).*$`)

// explainWait turns the end of a wait into Start's error.
func (d *deployment) explainWait(c *member, err, seen error) error {
	if ended := d.Err(); ended != nil {
		return ended
	}
	late, ok := errors.AsType[*LateError](err)
	if !ok {
		return fmt.Errorf("%s: %w", d.op, err)
	}
	// An engine may print why it cannot run and then hang.
	if known := d.knownFailure(c, "is "+late.Error()); known != nil {
		return known
	}
	last := lastOf(c.log.tail(), lastLines)
	state := "it has printed nothing"
	if len(last) > 0 {
		state = "its last line is " + quoteLine(last[len(last)-1])
	}
	if answer, ok := errors.AsType[statusError](seen); ok {
		state += ", and " + answer.Error()
	}
	return &InfraError{
		Op:   d.op,
		Err:  fmt.Errorf("%s is %w; %s", c.name, late, state),
		Help: "read its log " + c.log.path + ", and allow more time if it was still loading",
		Last: last,
		Log:  c.log.path,
	}
}

// failure finds the engine's reason in the log of a process, or else in those of
// the others of its replica: a rank may only say that another has ended.
func (d *deployment) failure(c *member) (f logs.Failure, log string, ok bool) {
	if f, ok := d.spec.diagnose(c.log.tail()); ok {
		return f, c.log.path, true
	}
	d.mu.Lock()
	members := slices.Clone(d.members) // a process may end while others are still being started
	d.mu.Unlock()
	for _, other := range members {
		if other == c || other.replica != c.replica {
			continue
		}
		if f, ok := d.spec.diagnose(other.log.tail()); ok {
			return f, other.log.path, true
		}
	}
	return f, "", false
}

// knownFailure is the error of a failure that the engine's signatures know: a refusal, unless
// the configuration is not to blame.
func (d *deployment) knownFailure(c *member, how string) error {
	f, log, ok := d.failure(c)
	switch {
	case !ok:
		return nil
	case f.Infra:
		return &InfraError{Op: d.op, Err: fmt.Errorf("%s %s: %s", c.name, how, f.Line), Help: f.Advice, Last: []string{f.Line}, Log: log, Lasting: f.Lasting}
	}
	return &RefusedError{Reason: f.Line, Log: log, Failure: f}
}

// explainExit says why a process has ended before the deployment was ready.
func (d *deployment) explainExit(c *member) error {
	tail := c.log.tail()
	status, code := c.Status()
	why := c.why()
	if why.Outside {
		return &InfraError{Op: d.op, Err: fmt.Errorf("%s ended before it was ready (%s)", c.name, status), Help: why.Help, Last: lastOf(tail, lastLines), Log: c.log.path}
	}
	if inUse.MatchString(tail) {
		return &PortError{InfraError{
			Op:   d.op,
			Err:  fmt.Errorf("%s could not bind a port: %s", c.name, quoteLine(inUse.FindString(tail))),
			Help: "end what else binds ports on this machine, and start again",
			Log:  c.log.path,
		}}
	}
	if known := d.knownFailure(c, "ended before it was ready ("+status+")"); known != nil {
		return known
	}
	if reason, ok := usageRefusal(tail); ok && code == 2 {
		return &RefusedError{Reason: reason, Log: c.log.path}
	}
	last := lastOf(tail, lastLines)
	err := fmt.Errorf("%s ended before it was ready (%s) and printed nothing", c.name, status)
	help := "run the command at the head of " + c.log.path + " by hand"
	if len(last) > 0 {
		err = fmt.Errorf("%s ended before it was ready (%s); its last line is %s", c.name, status, quoteLine(last[len(last)-1]))
		help = "read its log " + c.log.path
	}
	if code == 0 {
		help = "an engine must stay in the foreground, for its end is how perflab knows that it has ended: take away what puts it into the background (--daemon, &, nohup), or see in " + c.log.path + " why it had nothing to do"
	}
	return &InfraError{Op: d.op, Err: err, Help: cmp.Or(why.Help, help), Last: last, Log: c.log.path}
}

// why is what the Host knows of a process's end.
func (c *member) why() End {
	if e, ok := c.Running.(Explained); ok {
		return e.Explain()
	}
	return End{}
}

// explainDeath says why a process has ended after the deployment was ready.
func (d *deployment) explainDeath(c *member) error {
	tail := c.log.tail()
	f, _ := d.spec.diagnose(tail)
	status, _ := c.Status()
	why := c.why()
	e := &DiedError{Replica: c.replica, Status: status, Help: why.Help, Log: c.log.path}
	if c.peer != nil {
		e.Peer = c.peer.Name
	}
	if why.Outside { // whatever the log says is of the end, and not its cause
		return e
	}
	e.Reason, e.Failure, e.Last = f.Line, f, lastOf(tail, lastLines)
	if inUse.MatchString(tail) { // so it never served, and what answered the health check was another
		e.Reason = "another server had its port and answered in its place: " + quoteLine(inUse.FindString(tail))
	}
	return e
}
