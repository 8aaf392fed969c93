package deploy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // the script
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"perflab/internal/redact"
)

// Transport runs commands on other machines, or in containers, for a Keeper.
type Transport interface {
	// Open starts argv on a node and returns at once; ctx is for the start
	// alone. What the command prints is written to stdout and stderr, each
	// from one goroutine at a time, until Wait returns.
	Open(ctx context.Context, node string, argv []string, stdout, stderr io.Writer) (Session, error)
}

// Session is a command that a Transport runs.
type Session interface {
	io.Writer          // to its stdin
	CloseWrite() error // ends its stdin
	// Wait returns when the command has ended and all that it printed is written:
	// nil, whatever its status, or what broke the connection.
	Wait() error
	// Close cuts the connection, whatever runs over there and holds on to it: Wait
	// returns then.
	Close() error
}

// Keeper starts processes through a Transport, each under a shell script of its own
// that stays on the node, reports, and ends the process with all it started
// when told to, and also when perflab is gone or cut off. It is a Host but for
// URL, which the runtime adds that knows how to reach a port of the node.
//
// The script comes through stdin, and so does what it starts: secrets of the
// environment appear in no argument over there.
type Keeper struct {
	Transport
	Limits  Limits
	Dir     string        // working directory over there; "": where a session begins
	Silence time.Duration // without a sign of the other side, until either takes it for lost, in whole seconds; 0: 30 s
	Grace   time.Duration // from SIGTERM to SIGKILL when it is lost; 0: 10 s
}

//go:embed keeper.sh
var keeperScript string

// bootstrap reads a script from stdin and becomes it. It has no quote, backslash or
// line break, so every login shell hands it on as it is.
const bootstrap = `n=$(echo; echo .); n=${n%.}; s=; while IFS= read -r l; do case $l in "#end") break;; esac; s=$s$l$n; done; eval "$s"`

const defaultSilence = 30 * time.Second

// script is what starts the keeper's part over there.
func (k Keeper) script(tag, mode string, r Record, grace time.Duration) string {
	var b strings.Builder
	for _, v := range [][2]string{
		{"tag", tag},
		{"mode", mode},
		{"marker", r.Marker},
		{"limit", strconv.Itoa(max(1, int(k.silence()/time.Second)))},
		{"grace", milliseconds(grace)},
		{"pid", number(r.PID)},
		{"began", number(r.Start)},
		{"boot", r.Boot},
		{"dir", r.Dir},
	} {
		b.WriteString("k_" + v[0] + "=" + quote(v[1]) + "\n")
	}
	return b.String() + keeperScript + "#end\n"
}

// number is "" for what is not known.
func number[N int | uint64](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(0, d.Milliseconds()), 10) }

func (k Keeper) silence() time.Duration { return cmp.Or(k.Silence, defaultSilence) }

// identifier is a name that a shell can export.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// jobText is the shell text that sets what a process is started with. enter and
// file are functions of the script.
func jobText(dir, program string, argv, env []string, files []File) (string, error) {
	var b strings.Builder
	if dir != "" {
		b.WriteString("enter " + quote(dir) + "\n")
	}
	for _, f := range files {
		b.WriteString("file " + quote(f.Name) + " " + quote(f.Text) + "\n")
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !identifier.MatchString(name) {
			return "", fmt.Errorf("a shell cannot set the environment variable %q: use a name of letters, digits and _", name)
		}
		b.WriteString("export " + name + "=" + quote(value) + "\n")
	}
	b.WriteString("k_name0=" + quote(program) + "\nset --")
	for _, a := range argv {
		b.WriteString(" " + quote(a))
	}
	b.WriteString("\n")
	if strings.ContainsRune(b.String(), 0) {
		return "", errors.New("a word of the command has a NUL byte")
	}
	return b.String(), nil
}

// keeperSession is a session with the script.
type keeperSession struct {
	Session
	tag       string
	errors    *Stderr // what came over stderr: the transport's own messages
	mu        sync.Mutex
	lastHeard time.Time // when the other side was heard

	ended   chan struct{} // closed when the session has ended
	err     error         // of its Wait; after over
	running sync.WaitGroup
}

// open starts the script. heard is called with each of its words to perflab, in order,
// from one goroutine; what else is printed goes to out.
func (k Keeper) open(ctx context.Context, node, mode string, r Record, grace time.Duration, stdout, stderr io.Writer, heard func(line string)) (*keeperSession, error) {
	t := &keeperSession{tag: "@perflab-" + rand.Text() + ":", errors: new(Stderr), lastHeard: time.Now(), ended: make(chan struct{})}
	hear := func(line string) {
		t.mu.Lock()
		t.lastHeard = time.Now()
		t.mu.Unlock()
		heard(line)
	}
	out := &splitter{tag: t.tag, out: stdout, onLine: hear}
	err := io.Writer(t.errors)
	if stderr != nil {
		err = &splitter{tag: t.tag, before: t.errors, out: stderr, onLine: hear}
	}
	s, openErr := k.Open(ctx, node, []string{"/bin/sh", "-c", bootstrap}, out, err)
	if openErr != nil {
		return nil, openErr
	}
	t.Session = s
	t.running.Go(func() {
		t.err = s.Wait()
		out.flush()
		close(t.ended)
	})
	if err := t.send(k.script(t.tag, mode, r, grace)); err != nil {
		return nil, t.failure(err)
	}
	return t, nil
}

// send writes to the script.
func (t *keeperSession) send(text string) error {
	_, err := io.WriteString(t, text)
	return err
}

// sendJob sends a job.
func (t *keeperSession) sendJob(text string) error {
	return t.send(text + "#end " + strings.Trim(t.tag, "@:") + "\n")
}

// silentFor is how long nothing was heard.
func (t *keeperSession) silentFor() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.lastHeard)
}

// closeTimeout is how long a session may take to end by itself when all is said.
const closeTimeout = time.Second

// close ends the session, by force if need be.
func (t *keeperSession) close() {
	_ = t.CloseWrite() // fails when it has ended
	select {
	case <-t.ended:
	case <-time.After(closeTimeout):
	}
	t.cut()
}

// cut ends the session at once.
func (t *keeperSession) cut() {
	_ = t.Close() // fails when it has ended
	t.running.Wait()
}

// failure ends the session and says why it failed: as the transport has it, else by what was
// printed, else as err.
func (t *keeperSession) failure(err error) error {
	select {
	case <-t.ended:
	case <-time.After(closeTimeout):
	}
	t.cut()
	if t.err != nil {
		return t.err
	}
	if last := lastOf(string(t.errors.b), 1); len(last) > 0 {
		return fmt.Errorf("%s", redact.Text(last[0]))
	}
	return err
}

// splitter takes the script's words to perflab out of a stream. What comes before
// the first is not from the command: login shells print things.
type splitter struct {
	tag     string
	before  io.Writer // nil: dropped
	out     io.Writer
	onLine  func(string)
	started bool
	pending []byte
}

// longestLine bounds a line to perflab; text that looks like the begin of one is no longer.
const longestLine = 4 << 10

func (s *splitter) Write(p []byte) (int, error) {
	s.pending = append(s.pending, p...)
	for {
		at := strings.Index(string(s.pending), s.tag)
		if at < 0 {
			return len(p), s.pass(len(s.pending) - partial(s.pending, s.tag))
		}
		if err := s.pass(at); err != nil {
			return 0, err
		}
		line, rest, whole := strings.Cut(string(s.pending[len(s.tag):]), "\n")
		if !whole && len(line) < longestLine {
			return len(p), nil
		}
		s.pending = append(s.pending[:0], rest...)
		s.started = true
		s.onLine(line)
	}
}

// pass hands on the first n bytes.
func (s *splitter) pass(n int) (err error) {
	to := s.out
	if !s.started {
		to = s.before
	}
	if n > 0 && to != nil {
		_, err = to.Write(s.pending[:n])
	}
	s.pending = append(s.pending[:0], s.pending[n:]...)
	return err
}

// flush hands on what was held back, after the last Write.
func (s *splitter) flush() { _ = s.pass(len(s.pending)) }

// partial is the length of the longest end of b with which tag begins.
func partial(b []byte, tag string) int {
	for n := min(len(b), len(tag)-1); n > 0; n-- {
		if strings.HasPrefix(tag, string(b[len(b)-n:])) {
			return n
		}
	}
	return 0
}

// Run runs a short command on a node, as a Commander does.
func (k Keeper) Run(ctx context.Context, node string, argv []string, stdout io.Writer) error {
	op := "run " + strings.Join(redact.Argv(argv), " ") + onNode(node)
	text, err := jobText(k.Dir, argv[0], argv, nil, nil)
	if err != nil {
		return &InfraError{Op: op, Err: err}
	}
	stderr := new(Stderr)
	var exit, refused string
	t, err := k.open(ctx, node, "run", Record{}, 0, stdout, stderr, func(line string) {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "exit":
			exit = rest
		case "refused":
			refused = rest
		}
	})
	if err == nil {
		if err = t.sendJob(text); err != nil {
			err = t.failure(err)
		}
	}
	if err != nil {
		return asInfra(ctx, op, err)
	}
	select {
	case <-t.ended:
	case <-ctx.Done():
		t.close()
		return context.Cause(ctx)
	}
	t.cut()
	code, err := strconv.Atoi(exit)
	switch {
	case refused != "":
		return refusedBy(op, node, argv[0], refused)
	case t.err != nil || err != nil:
		return asInfra(ctx, op, t.failure(errors.New("the connection ended before the command did")))
	case code != 0:
		_, code = exitStatus(code)
		return stderr.Failed(argv, code)
	}
	return nil
}

// onNode names a node in a message.
func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// asInfra makes an InfraError of what went wrong with a transport, unless it is one. Of ctx's end it makes its cause.
func asInfra(ctx context.Context, op string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if infra, ok := errors.AsType[*InfraError](err); ok {
		return infra
	}
	return &InfraError{Op: op, Err: err, Help: "see whether the machine is up and can be reached, and start again"}
}

// refusedBy explains why the script did not start a program.
func refusedBy(op, node, program, why string) error {
	e := &InfraError{Op: op}
	where := cmp.Or(node, "the machine")
	word, object, _ := strings.Cut(why, " ")
	switch word {
	case "unknown":
		e.Err = &exec.Error{Name: program, Err: exec.ErrNotFound}
		e.Help = fmt.Sprintf("%s is not on PATH of a session on %s, which reads no profile: install it there, give its full path, or set PATH in the environment", program, where)
	case "missing":
		e.Err = &fs.PathError{Op: "start", Path: program, Err: fs.ErrNotExist}
		e.Help = fmt.Sprintf("%s does not exist on %s: correct the path", program, where)
	case "mode":
		e.Err = &fs.PathError{Op: "start", Path: program, Err: fs.ErrPermission}
		e.Help = fmt.Sprintf("%s is not executable on %s: chmod +x it there, or correct the path", program, where)
	case "directory":
		e.Err = &fs.PathError{Op: "enter", Path: object, Err: fs.ErrNotExist}
		e.Help = fmt.Sprintf("make the working directory %s on %s, or correct its path", object, where)
	default: // write
		e.Err = fmt.Errorf("nothing can be written under %s on %s", object, where)
		e.Help = "free some space there, or set TMPDIR there to a directory that can be written to"
	}
	return e
}

// Ports chooses n ports of a node that nobody uses there now, distinct also from those
// chosen before.
func (k Keeper) Ports(ctx context.Context, node string, n int) ([]int, error) {
	var out bytes.Buffer
	err := k.Run(ctx, node, []string{"/bin/sh", "-c", "cat /proc/sys/net/ipv4/ip_local_port_range /proc/net/tcp /proc/net/tcp6 2>/dev/null; :"}, &out)
	if err != nil {
		return nil, err
	}
	return freePorts(out.Bytes(), n)
}

// End ends what a record of an earlier keeper leads to.
func (k Keeper) End(ctx context.Context, r Record) ([]string, error) {
	ended, left, err := k.end(ctx, r)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s of an earlier deployment does not end after SIGKILL%s", left[0], onNode(r.Node))
	}
	return ended, err
}

// endLimit bounds how long a leftover is waited for.
const endLimit = leftoverGrace + killWait + 20*time.Second

func (k Keeper) end(ctx context.Context, r Record) (found, left []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	done := make(chan struct{})
	var once sync.Once
	op := "end " + r.Name + onNode(r.Node)
	t, err := k.open(ctx, r.Node, "end", r, leftoverGrace, io.Discard, nil, func(line string) {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "found":
			found = append(found, describeRemote(rest))
		case "left":
			left = append(left, describeRemote(rest))
		case "done":
			once.Do(func() { close(done) })
		}
	})
	if err != nil {
		return nil, nil, asInfra(ctx, op, err)
	}
	select {
	case <-done:
		t.close()
		return found, left, nil
	case <-t.ended:
		return nil, nil, asInfra(ctx, op, t.failure(errors.New("the connection ended")))
	case <-ctx.Done():
		t.cut()
		return nil, nil, asInfra(context.Background(), op, errors.New("no answer in time"))
	}
}

// describeRemote is describe for the script's "PID NAME".
func describeRemote(text string) string {
	pid, name, _ := strings.Cut(text, " ")
	return "process " + pid + " (" + name + ")"
}

// logOf opens a job's log anew, for it is written to after Spawn has returned.
func logOf(j Job) (*os.File, error) {
	return os.OpenFile(j.Log.Name(), os.O_WRONLY|os.O_APPEND, 0)
}

// closeOnce closes a channel that one goroutine closes.
func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// exitStatus makes of a shell's status what os.ProcessState says.
func exitStatus(code int) (string, int) {
	const signalled, signals = 128, 64
	if code > signalled && code <= signalled+signals {
		return "signal: " + syscall.Signal(code-signalled).String(), -1
	}
	return "exit status " + strconv.Itoa(code), code
}
