package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"
	"time"

	"perflab/internal/deploy"
)

// Orders to an agent: words of bus.Do.
const (
	wordHold   = "node.hold"   // holdOrder -> held
	wordRenew  = "node.renew"  // nothing -> nothing
	wordLeave  = "node.leave"  // nothing -> nothing: end all
	wordPorts  = "node.ports"  // portsOrder -> []int
	wordSpawn  = "node.spawn"  // spawnOrder -> deploy.Record
	wordLog    = "node.log"    // logOrder -> logPart
	wordStop   = "node.stop"   // stopOrder -> stopped
	wordReady  = "node.ready"  // runOrder without argv -> nothing: make ready what engines need, of which output tells as of a command
	wordRun    = "node.run"    // runOrder -> nothing
	wordOutput = "node.output" // numbered -> output
	wordKill   = "node.kill"   // numbered -> nothing
	wordOpen   = "node.open"   // openOrder -> nothing
	wordRead   = "node.read"   // numbered -> chunk
	wordWrite  = "node.write"  // writeOrder -> nothing
	wordShut   = "node.shut"   // shutOrder -> nothing

	words = "node.*"
)

const (
	longPoll = 10 * time.Second // that an answer waits for something to tell: a bus lets an agent answer for two minutes
	frame    = 32 << 10         // bytes of a stream, a log or an output in a message
)

// envelope is an order.
type envelope struct {
	Token uint64          `json:"token"`
	Order json.RawMessage `json:"order,omitempty"`
}

// answer is what an agent says to an order.
type answer struct {
	Token   uint64          `json:"token"`
	Process string          `json:"process"` // of the agent: another one after a restart
	Fault   *fault          `json:"fault,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// holdOrder takes the node.
type holdOrder struct {
	Lease time.Duration `json:"lease_ns"` // all ends when nothing is heard for so long
	Who   string        `json:"who,omitempty"`
	Study string        `json:"study,omitempty"`

	// Session is the leader's name for what it does, the same when it takes the node again: what a tag means is found once.
	Session string `json:"session,omitempty"`
}

// held says what the node had to end for a new holder.
type held struct {
	Ended []leftover `json:"ended,omitempty"`
}

// leftover is an engine of an earlier holder that still ran.
type leftover struct {
	Marker string `json:"marker"`
	Name   string `json:"name"`
}

type portsOrder struct {
	N     int      `json:"n"`
	Start Settings `json:"start,omitzero"`
}

// spawnOrder starts a process. Its number is the leader's choice, so that an order whose answer was lost can be
// given again.
type spawnOrder struct {
	Number  int           `json:"number"`
	Start   Settings      `json:"start"`
	Op      string        `json:"op"`
	Name    string        `json:"name"`
	Marker  string        `json:"marker"`
	Ports   []int         `json:"ports"`
	Visible string        `json:"visible,omitempty"`
	Argv    []string      `json:"argv"`
	Env     []string      `json:"env,omitempty"`
	Devices []string      `json:"devices"` // nil: all there are
	Files   []deploy.File `json:"files,omitempty"`
}

// Settings are a study's for engines on its machines.
type Settings struct {
	Dir        string          `json:"dir,omitempty"`
	Limits     deploy.Limits   `json:"limits,omitzero"`
	Containers json.RawMessage `json:"containers,omitempty"` // as deploy.Containers has them; none: processes
}

// logOrder asks for what a process has printed, from a place on; it waits for more, and for the end.
type logOrder struct {
	Number int   `json:"number"`
	From   int64 `json:"from"`
}

type logPart struct {
	Bytes  []byte `json:"bytes,omitempty"`
	Ended  bool   `json:"ended,omitempty"` // the process has, and this is the end of what it printed
	Status string `json:"status,omitempty"`
	Code   int    `json:"code,omitempty"`
}

// stopOrder ends a process, and waits for that.
type stopOrder struct {
	Number int           `json:"number"`
	Grace  time.Duration `json:"grace_ns"`
	Hurry  bool          `json:"hurry,omitempty"`  // the grace is over
	Forget bool          `json:"forget,omitempty"` // its log has come, and is not kept
}

type stopped struct {
	Done  bool   `json:"done,omitempty"` // else it is still ending
	Fault *fault `json:"fault,omitempty"`
}

// runOrder starts a short command.
type runOrder struct {
	Number int      `json:"number"`
	Start  Settings `json:"start"`
	Argv   []string `json:"argv,omitempty"`
}

type numbered struct {
	Number int `json:"number"`
}

// output is what a command has printed since the last answer with the number before it.
type output struct {
	Bytes []byte `json:"bytes,omitempty"`
	Ended bool   `json:"ended,omitempty"` // and that was all
	Fault *fault `json:"fault,omitempty"` // of one that has ended
	Image string `json:"image,omitempty"` // that was made ready, by digest
}

// openOrder connects a stream to a port of an engine.
type openOrder struct {
	Number int `json:"number"`
	Engine int `json:"engine"`
	Port   int `json:"port"`
}

type writeOrder struct {
	Number int    `json:"number"`
	Bytes  []byte `json:"bytes"`
}

// chunk is what came of a stream.
type chunk struct {
	Bytes []byte `json:"bytes,omitempty"`
	End   bool   `json:"end,omitempty"`
}

type shutOrder struct {
	Number int  `json:"number"`
	Half   bool `json:"half,omitempty"` // nothing more is written
}

// fault is an error on its way.
type fault struct {
	Kind    string   `json:"kind"`
	Op      string   `json:"op,omitempty"`
	Text    string   `json:"text,omitempty"`
	Help    string   `json:"help,omitempty"`
	Last    []string `json:"last,omitempty"`
	Lasting bool     `json:"lasting,omitempty"`
	Missing string   `json:"missing,omitempty"` // one of missing
	Argv    []string `json:"argv,omitempty"`
	Code    int      `json:"code,omitempty"`
	Stderr  string   `json:"stderr,omitempty"`
}

// Kinds of faults.
const (
	faultFenced = "fenced" // the order is not of whoever holds the node
	faultInfra  = "infra"
	faultPort   = "port" // a port was taken
	faultExit   = "exit"
	faultOther  = "other"
)

// missing are errors by which callers know that trying again does not help.
var missing = map[string]error{"program": exec.ErrNotFound, "file": fs.ErrNotExist, "permission": fs.ErrPermission}

// FencedError says that a node refuses an order, since whoever gave it does not hold the node (any more).
type FencedError struct{ Text string }

func (e *FencedError) Error() string { return e.Text }

// faultOf is an error as a message has it; nil for none.
func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	if fenced, ok := errors.AsType[*FencedError](err); ok {
		return &fault{Kind: faultFenced, Text: fenced.Text}
	}
	if exit, ok := errors.AsType[*deploy.ExitError](err); ok {
		return &fault{Kind: faultExit, Argv: exit.Argv, Code: exit.Code, Stderr: exit.Stderr}
	}
	f := &fault{Kind: faultOther, Text: err.Error()}
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok {
		f = &fault{Kind: faultInfra, Op: infra.Op, Text: infra.Err.Error(), Help: infra.Help, Last: infra.Last, Lasting: infra.Lasting}
	}
	if _, taken := errors.AsType[*deploy.PortError](err); taken {
		f.Kind = faultPort
	}
	for name, is := range missing {
		if errors.Is(err, is) {
			f.Missing = name
		}
	}
	return f
}

// err is the error that was sent.
func (f *fault) err() error {
	if f == nil {
		return nil
	}
	switch f.Kind {
	case faultFenced:
		return &FencedError{f.Text}
	case faultExit:
		return &deploy.ExitError{Argv: f.Argv, Code: f.Code, Stderr: f.Stderr}
	}
	why := error(&farError{f.Text, missing[f.Missing]})
	infra := deploy.InfraError{Op: f.Op, Err: why, Help: f.Help, Last: f.Last, Lasting: f.Lasting}
	switch f.Kind {
	case faultInfra:
		return &infra
	case faultPort:
		return &deploy.PortError{InfraError: infra}
	}
	return why
}

// farError is an error of another machine.
type farError struct {
	text string
	is   error
}

func (e *farError) Error() string { return e.text }
func (e *farError) Unwrap() error { return e.is }
