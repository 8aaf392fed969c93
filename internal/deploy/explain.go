package deploy

import (
	"errors"
	"fmt"
	"regexp"
)

// inUse is how engines say that they cannot bind.
var inUse = regexp.MustCompile(`(?im)^.*(?:address already in use|EADDRINUSE|couldn't bind HTTP server socket).*$`)

// explainWait turns the end of a wait into Start's error.
func (d *deployment) explainWait(c *member, err, seen error) error {
	if ended := d.Err(); ended != nil {
		return ended
	}
	late, ok := errors.AsType[*lateError](err)
	if !ok {
		return fmt.Errorf("%s: %w", d.op, err)
	}
	// An engine may print why it cannot run and then hang.
	if refused := d.refused(c); refused != nil {
		return refused
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

// refused finds the engine's reason in the log of a process, or else in those of
// the others of its replica: a rank may only say that another has ended.
func (d *deployment) refused(c *member) error {
	if reason, ok := d.spec.refusal(c.log.tail()); ok {
		return &RefusedError{Reason: reason, Log: c.log.path}
	}
	for _, other := range d.members {
		if other == c || other.replica != c.replica {
			continue
		}
		if reason, ok := d.spec.refusal(other.log.tail()); ok {
			return &RefusedError{Reason: reason, Log: other.log.path}
		}
	}
	return nil
}

// explainExit says why a process has ended before the deployment was ready.
func (d *deployment) explainExit(c *member) error {
	tail := c.log.tail()
	status, code := c.Status()
	if inUse.MatchString(tail) {
		return &PortError{InfraError{
			Op:   d.op,
			Err:  fmt.Errorf("%s could not bind a port: %s", c.name, quoteLine(inUse.FindString(tail))),
			Help: "end what else binds ports on this machine, and start again",
			Log:  c.log.path,
		}}
	}
	if refused := d.refused(c); refused != nil {
		return refused
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
	return &InfraError{Op: d.op, Err: err, Help: help, Last: last, Log: c.log.path}
}

// explainDeath says why a process has ended after the deployment was ready.
func (d *deployment) explainDeath(c *member) error {
	tail := c.log.tail()
	reason, _ := d.spec.refusal(tail)
	status, _ := c.Status()
	e := &DiedError{Replica: c.replica, Status: status, Reason: reason, Last: lastOf(tail, lastLines), Log: c.log.path}
	if c.peer != nil {
		e.Peer = c.peer.Name
	}
	return e
}
