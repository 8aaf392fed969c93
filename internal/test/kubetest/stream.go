package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// idle is how long a stream may be still.
const idle = 4 * time.Hour

// serveExec runs a command in a container.
func (n *Node) serveExec(w http.ResponseWriter, r *http.Request) {
	c, ok := n.asked(w, r)
	if !ok {
		return
	}
	if !c.runs() {
		http.Error(w, fmt.Sprintf("container not found (%q)", c.spec.Name), http.StatusNotFound)
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, executor{c}, "", "", c.spec.Name, r.URL.Query()["command"], opts, idle, soon, remotecommand.SupportedStreamingProtocols)
}

// executor runs what a stream asks for.
type executor struct{ c *container }

var _ remotecommand.Executor = executor{}

// ExecInContainer runs a command with the streams that the client has.
func (e executor) ExecInContainer(ctx context.Context, _, _, _ string, argv []string, in io.Reader, out, errs io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	for _, w := range []io.WriteCloser{out, errs} {
		if w != nil {
			defer w.Close()
		}
	}
	return e.c.exec(ctx, argv, in, writer(out), writer(errs))
}

// writer is a stream that may be missing.
func writer(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

func (c *container) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cmd != nil
}

// begun says whether the container's process has started and its startup probe has succeeded.
func (c *container) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// exec runs a command in the container; ctx's end, and the container's, kills it.
func (c *container) exec(ctx context.Context, argv []string, in io.Reader, out, errs io.Writer) error {
	c.mu.Lock()
	env, runs := c.env, c.cmd != nil
	c.mu.Unlock()
	if !runs {
		return errNotRunning
	}
	placed := make([]string, len(argv))
	for i, a := range argv {
		placed[i] = c.placed(a)
	}
	cmd, err := c.command(placed, env)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, errs
	if in != nil {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() { // ends with the client's stream, at the latest with its connection
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close() // the command has ended
		}()
	}
	family := c.pod.node.c.plane.family
	if err := family.start(cmd); err != nil {
		return fmt.Errorf("exec %q: %w", argv[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	family.wait(cmd)
	stop()
	if code := exitCode(cmd.ProcessState); code != 0 {
		return &exitError{code}
	}
	return nil
}

// serveForward connects a client to ports of a pod.
func (n *Node) serveForward(w http.ResponseWriter, r *http.Request) {
	p := n.find(r.PathValue("namespace"), r.PathValue("pod"))
	if p == nil {
		http.Error(w, fmt.Sprintf("pod %q not found", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{p}, "", "", opts, idle, soon, portforward.SupportedProtocols)
}

// forwarder connects streams to a pod's ports.
type forwarder struct{ p *pod }

var _ portforward.PortForwarder = forwarder{}

// PortForward copies between a stream and a port of the pod.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", address, port))
	if err != nil {
		return fmt.Errorf("dial the pod's port %d: %w", port, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(f.p.ctx, func() { _ = conn.Close() }) // the pod ends
	defer stop()
	there := make(chan struct{})
	go func() { // ends with the stream, which the deferred Close ends
		defer close(there)
		_, _ = io.Copy(conn, stream)
		if c, is := conn.(*net.TCPConn); is {
			_ = c.CloseWrite() // the other side has gone
		}
	}()
	_, err = io.Copy(stream, conn)
	_ = stream.Close() // it may be closed already
	_ = conn.Close()   // likewise
	<-there
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
