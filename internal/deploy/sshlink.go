package deploy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// link is a connection to a machine: a master of the ssh client, with a socket that
// sessions and forwards go through. The master runs a command that ends with
// perflab, so it needs nobody to end it.
type link struct {
	host   HostEntry
	config string
	socket string

	connected chan struct{} // closed when the connection stands
	ended     chan struct{} // closed when it has ended
	err       error         // of the start; after over
	running   sync.WaitGroup
	stdin     io.Closer // of the master, nil when it was not started
	cmd       *exec.Cmd
	stderr    *outputTail // its stderr

	mu      sync.Mutex
	users   int // sessions and forwards that are open, or will be
	suspect bool
	idle    *time.Timer
}

const (
	connectSeconds = 10
	// linkLimit is how long a connection may take with all of its logging in.
	linkLimit = 30 * time.Second
	// linkIdle is how long a connection stays that nobody uses.
	linkIdle  = time.Minute
	linkReady = "perflab-link-ready"
)

// newLink begins to connect, with one place taken. It does not wait.
func newLink(h HostEntry, config string) *link {
	l := &link{host: h, config: config, connected: make(chan struct{}), ended: make(chan struct{}), users: 1, stderr: new(outputTail)}
	if err := l.start(); err != nil {
		l.err = err
		close(l.ended)
	}
	return l
}

// socketDir is a directory of this user alone for control sockets. It is not under
// TMPDIR: a socket's path has 104 bytes on some systems, and ssh appends to it.
func socketDir() (string, error) {
	dir := fmt.Sprintf("/tmp/perflab-ssh-%d", os.Getuid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !isOurs(info) || info.Mode().Perm() != 0o700 {
		return "", fmt.Errorf("%s is not a directory that only this user can enter: remove it", dir)
	}
	return dir, nil
}

// args are the client's for the connection itself.
func (l *link) args() []string {
	var args []string
	if l.config != "" {
		args = append(args, "-F", l.config)
	}
	args = append(args, "-M", "-S", l.socket, "-T")
	for _, o := range []string{
		"ControlPersist=no", "BatchMode=yes", "LogLevel=INFO",
		"ConnectTimeout=" + strconv.Itoa(connectSeconds), "ServerAliveInterval=5", "ServerAliveCountMax=3",
		"ClearAllForwardings=yes", "ForwardX11=no", "RequestTTY=no", "RemoteCommand=none", "PermitLocalCommand=no",
	} {
		args = append(args, "-o", o)
	}
	h := l.host
	if h.Address != "" {
		args = append(args, "-o", "HostName="+h.Address)
	}
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	if h.Port != 0 {
		args = append(args, "-p", strconv.Itoa(h.Port))
	}
	if h.Identity != "" {
		args = append(args, "-i", h.Identity, "-o", "IdentitiesOnly=yes")
	}
	return append(args, "--", h.Name)
}

// start runs the master.
func (l *link) start() error {
	dir, err := socketDir()
	if err != nil {
		return fileError("connect to "+l.host.Name, err)
	}
	l.socket = filepath.Join(dir, rand.Text()[:12])
	l.cmd = exec.Command("ssh", append(l.args(), "exec /bin/sh -c 'echo "+linkReady+"; exec cat >/dev/null'")...)
	// Of its own group: an interrupt at the terminal is perflab's, which has
	// engines to stop over this connection.
	l.cmd.SysProcAttr = ownGroup()
	l.cmd.Stdout, l.cmd.Stderr = &readyWriter{ready: l.connected}, l.stderr
	l.cmd.WaitDelay = closeTimeout
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		return err
	}
	l.stdin = stdin
	if err := l.cmd.Start(); err != nil {
		l.stdin = nil
		return &InfraError{Op: "connect to " + l.host.Name, Err: err, Help: "install the OpenSSH client: perflab uses the system's ssh"}
	}
	l.running.Go(func() {
		_ = l.cmd.Wait() // what it said is more than its status
		os.Remove(l.socket)
		close(l.ended)
	})
	return nil
}

// outputTail keeps the end of what a client says, to be read at any time.
type outputTail struct {
	mu    sync.Mutex
	end   Stderr
	total int
}

func (s *outputTail) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += len(p)
	return s.end.Write(p)
}

func (s *outputTail) text() string { return s.since(0) }

// count is how many bytes were said.
func (s *outputTail) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// since is what was said after the first n bytes, as far as it is kept.
func (s *outputTail) since(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.end.b[max(0, len(s.end.b)-(s.total-n)):])
}

// readyWriter waits for the sign that the connection stands.
type readyWriter struct {
	ready chan struct{}
	seen  []byte
}

func (o *readyWriter) Write(p []byte) (int, error) {
	if o.seen = append(o.seen, p...); bytes.Contains(o.seen, []byte(linkReady)) {
		closeOnce(o.ready)
		o.seen = nil
	}
	return len(p), nil
}

// awaitUp waits until the connection stands. When it does not, the place is given back.
func (l *link) awaitUp(ctx context.Context) error {
	late := time.NewTimer(linkLimit)
	defer late.Stop()
	var err error
	select {
	case <-l.connected:
		return nil
	case <-l.ended:
		err = l.failure()
	case <-late.C:
		l.distrust()
		err = &InfraError{Op: "connect to " + l.host.Name, Err: fmt.Errorf("no shell within %v", linkLimit), Help: "see whether ssh " + l.host.Name + " true returns by hand"}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.release()
	return err
}

// failure says why there is no connection.
func (l *link) failure() error {
	if l.err != nil {
		return l.err
	}
	return explainSSH(l.host, l.stderr.text())
}

// acquire takes a place, and says whether there was one.
func (l *link) acquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.suspect || l.users >= sessionsPerLink {
		return false
	}
	l.users++
	if l.idle != nil {
		l.idle.Stop()
	}
	return true
}

// release gives a place back. A connection that nobody uses ends after a while, at once
// when it is not trusted.
func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	if l.users > 0 || l.stdin == nil {
		return
	}
	if l.suspect {
		_ = l.cmd.Process.Kill()
		return
	}
	l.idle = time.AfterFunc(linkIdle, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.users == 0 {
			l.suspect = true // nobody takes a place any more
			l.stdin.Close()
		}
	})
}

// distrust has no more sessions go over the connection.
func (l *link) distrust() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suspect = true
}

// unusable tells whether a new session needs another link.
func (l *link) unusable() bool {
	select {
	case <-l.ended:
		return true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspect
}

// close ends the connection.
func (l *link) close() {
	if l.stdin == nil {
		return
	}
	l.stdin.Close()
	select {
	case <-l.ended:
	case <-time.After(closeTimeout):
		_ = l.cmd.Process.Kill()
	}
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		l.idle.Stop()
	}
}

// client is the ssh client over the connection: it reads no configuration, and makes
// no connection of its own where the socket has gone.
func (l *link) client(args ...string) *exec.Cmd {
	base := []string{"-F", "/dev/null", "-S", l.socket, "-T", "-o", "ControlMaster=no", "-o", "BatchMode=yes", "-o", "ProxyCommand=false"}
	cmd := exec.Command("ssh", append(base, args...)...)
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = closeTimeout
	return cmd
}

// open starts a command in a place that has been taken.
func (l *link) open(argv []string, stdout, stderr io.Writer) (Session, error) {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = quote(a)
	}
	s := &sshSession{link: l, stderr: new(outputTail)}
	s.cmd = l.client("--", "perflab", "exec "+strings.Join(words, " "))
	s.cmd.Stdout, s.cmd.Stderr = stdout, io.MultiWriter(stderr, s.stderr)
	stdin, err := s.cmd.StdinPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		l.release()
		return nil, &InfraError{Op: "reach " + l.host.Name, Err: err}
	}
	s.stdin = stdin
	return s, nil
}

// sshSession is a command over a link.
type sshSession struct {
	link   *link
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *outputTail

	mu    sync.Mutex
	ended bool
}

func (s *sshSession) Write(p []byte) (int, error) { return s.stdin.Write(p) }
func (s *sshSession) CloseWrite() error           { return s.stdin.Close() }

// connectionStatus is the client's own when the connection fails.
const connectionStatus = 255

// Wait waits for the command's end.
func (s *sshSession) Wait() error {
	err := s.cmd.Wait()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.link.release()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != connectionStatus && exit.ExitCode() >= 0 {
		return nil
	}
	text := s.stderr.text()
	select {
	case <-s.link.ended: // the master knows more
		text += "\n" + s.link.stderr.text()
	case <-time.After(100 * time.Millisecond):
	}
	return explainSSH(s.link.host, text)
}

// Close cuts the session. One that had not ended by itself makes its connection
// one that is not trusted: it may hang.
func (s *sshSession) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	s.link.distrust()
	return s.cmd.Process.Kill()
}

// forward is a local port that leads to one of the machine's.
type forward struct {
	link        *link
	local, spec string
}

// forwardWait is how long a forward is tried: an engine that listens already answers
// nothing.
const forwardWait = 200 * time.Millisecond

const forwardAttempts = 3 // a free port may be taken between the choice and ssh's bind

// forward makes a way to a port of the machine's loopback interface. It keeps the
// place that its caller took.
func (l *link) forward(ctx context.Context, port int) (*forward, error) {
	op := fmt.Sprintf("forward a port to %d on %s", port, l.host.Name)
	var err error
	for range forwardAttempts {
		var ports []int
		if ports, err = (local{}).Ports(ctx, "", 1); err != nil {
			break
		}
		address := loopback + ":" + strconv.Itoa(ports[0])
		f := &forward{link: l, local: address, spec: address + ":" + loopback + ":" + strconv.Itoa(port)}
		if err = l.control(ctx, "forward", f.spec); err == nil {
			if err = l.checkForward(ctx, f); err == nil {
				return f, nil
			}
			f.cancel()
			return nil, asInfra(ctx, op, err)
		}
	}
	l.release()
	return nil, asInfra(ctx, op, err)
}

// control gives the master an order.
func (l *link) control(ctx context.Context, order, spec string) error {
	cmd := l.client("-O", order, "-L", spec, "--", "perflab")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, connectSeconds*time.Second)
		defer cancel()
		release := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // fails when it has ended
		defer release()
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("ssh: %s", cmp.Or(strings.TrimSpace(out.String()), err.Error()))
	}
	return nil
}

// checkForward finds out whether the machine allows forwards: nobody listens there yet,
// so a connection ends at once, and the master says of which kind that was.
func (l *link) checkForward(ctx context.Context, f *forward) error {
	before := l.stderr.count()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.local)
	if err != nil {
		return err
	}
	defer c.Close()
	// The master speaks before it closes, through a pipe.
	_ = c.SetReadDeadline(time.Now().Add(forwardWait))
	_, _ = c.Read(make([]byte, 1))
	said := l.stderr.since(before)
	for end := time.Now().Add(lastLook); !strings.Contains(said, "open failed") && time.Now().Before(end); said = l.stderr.since(before) {
		time.Sleep(firstLook)
	}
	if strings.Contains(said, "administratively prohibited") {
		return &InfraError{
			Op: "forward a port to " + l.host.Name, Err: errors.New("its ssh server forbids forwarding"),
			Help: "set AllowTcpForwarding yes in sshd_config there, or have the engines reached directly",
		}
	}
	return nil
}

// cancel takes the way away.
func (f *forward) cancel() {
	select {
	case <-f.link.ended:
	default:
		if err := f.link.control(context.Background(), "cancel", f.spec); err != nil {
			f.link.distrust() // it ends, with the forward, when its sessions have
		}
	}
	f.link.release()
}

// hostName is what ssh -G prints of the address.
var hostName = regexp.MustCompile(`(?m)^hostname (\S+)$`)

// address is where ssh connects to.
func (l *link) address(ctx context.Context) string {
	args := []string{"-G"}
	if l.config != "" {
		args = append(args, "-F", l.config)
	}
	out, err := exec.CommandContext(ctx, "ssh", append(args, "--", l.host.Name)...).Output()
	if m := hostName.FindSubmatch(out); err == nil && m != nil {
		return string(m[1])
	}
	return l.host.Name
}

// sessionsPerLink bounds the sessions over one connection: sshd allows 10 unless its
// MaxSessions says otherwise, and the link has one for itself.
const sessionsPerLink = 8
