package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
	"perflab/internal/redact"
)

// attach looks at the container that engines are started in.
func (e *engine) attach(ctx context.Context, op string) error {
	name := e.settings.Container
	found, err := e.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil {
		return e.explain(ctx, op+": look at the container "+name, err)
	}
	c := found.Container
	if c.State == nil || !c.State.Running || c.State.Paused {
		return &deploy.InfraError{
			Op: op, Err: fmt.Errorf("the container %s does not run", name),
			Help: "start it with docker start " + name + ", or name an image instead",
		}
	}
	if e.image.id != c.Image {
		e.image = image{id: c.Image}
		if im, err := e.api.ImageInspect(ctx, c.Image); err == nil && c.Config != nil { // else it has no digest any more
			e.image.digest = pickDigest(c.Config.Image, im.RepoDigests)
		}
	}
	e.attached = attached{id: c.ID, address: e.address}
	if c.HostConfig == nil || c.HostConfig.NetworkMode.IsHost() || c.NetworkSettings == nil {
		return nil
	}
	for _, n := range c.NetworkSettings.Networks {
		if n != nil && n.IPAddress.IsValid() {
			e.attached.address = cmp.Or(e.settings.Address, n.IPAddress.String())
		}
	}
	return nil
}

// keeper starts commands in a container.
func (e *engine) keeper(id string) deploy.Keeper {
	return deploy.Keeper{Transport: transport{e, id}, Dir: e.settings.WorkDir, Silence: e.silence, Grace: e.grace}
}

// place names a container in messages.
func (e *engine) place(id string) string {
	if e.settings.Container != "" {
		return "the container " + e.settings.Container
	}
	return "the container " + shortID(id)
}

// exec runs argv in a container that runs; it ends with ctx.
func (e *engine) exec(ctx context.Context, id string, argv []string, stdout io.Writer) error {
	return e.keeper(id).Run(ctx, e.place(id), argv, stdout)
}

// attachedProcess is a process in a container that runs already.
type attachedProcess struct {
	*deploy.KeeperProcess
	engine *engine
	in     attached
}

var _ deploy.Running = (*attachedProcess)(nil)

// Record is the container's id and the process's identity in it.
func (c *attachedProcess) Record() deploy.Record {
	r := c.KeeperProcess.Record()
	r.Container, r.Engine = c.in.id, c.engine.api.DaemonHost()
	return r
}

// Stop ends the process. In a container that does not run any more nothing is left of it.
func (c *attachedProcess) Stop(grace time.Duration, hurry <-chan struct{}) error {
	err := c.KeeperProcess.Stop(grace, hurry)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	for end := time.Now().Add(exitDelay); ; time.Sleep(firstPause) {
		runs, looked := c.engine.runs(ctx, c.in.id)
		if looked == nil && !runs {
			return nil
		}
		if looked != nil || time.Now().After(end) {
			return err
		}
	}
}

// exitDelay is how long a container that ends may still be called running.
const exitDelay = 2 * time.Second

// runs tells whether a container is there and runs.
func (e *engine) runs(ctx context.Context, id string) (bool, error) {
	found, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if isNotFound(err) {
		return false, nil
	}
	return err == nil && found.Container.State != nil && found.Container.State.Running, err
}

// URL is a port of the container.
func (c *attachedProcess) URL(_ context.Context, port int) (string, error) {
	c.Serves(port)
	return "http://" + net.JoinHostPort(c.in.address, strconv.Itoa(port)), nil
}

// transport runs commands in a container, with a connection each.
type transport struct {
	*engine
	id string
}

var _ deploy.Transport = transport{}

// Open starts argv in the container.
func (t transport) Open(ctx context.Context, _ string, argv []string, stdout, stderr io.Writer) (deploy.Session, error) {
	op := "run a command in " + t.place(t.id)
	made, err := t.api.ExecCreate(ctx, t.id, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
		User: t.settings.User, Env: t.settings.environment(), Cmd: argv,
	})
	if err != nil {
		return nil, t.explain(ctx, op, err)
	}
	stream, err := t.api.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, t.explain(ctx, op, err)
	}
	s := &session{HijackedResponse: stream.HijackedResponse, transport: t, exec: made.ID}
	s.copying.Go(func() {
		head := &headWriter{Writer: stdout}
		_, s.err = stdcopy.StdCopy(head, cmp.Or(stderr, io.Discard), stream.Reader)
		s.fault = head.fault()
	})
	return s, nil
}

// session is an exec with its streams.
type session struct {
	client.HijackedResponse
	transport
	exec    string
	copying sync.WaitGroup
	err     error  // of the copy
	fault   string // why the command was not started
}

// Write writes to the command's stdin.
func (s *session) Write(p []byte) (int, error) { return s.Conn.Write(p) }

// CloseWrite ends the command's stdin.
func (s *session) CloseWrite() error { return s.HijackedResponse.CloseWrite() }

// Close cuts the connection, which ends the command's stdin too.
func (s *session) Close() error { return s.Conn.Close() }

// Wait returns when the command has ended, or the connection.
func (s *session) Wait() error {
	s.copying.Wait()
	defer s.Conn.Close()
	if s.fault != "" {
		return &deploy.InfraError{
			Op: "run a command in " + s.place(s.id), Err: errors.New(redact.Text(s.fault)),
			Help: "perflab needs /bin/sh, grep, tr, cat and sleep in a container that it starts commands in, and a user that may run them",
		}
	}
	if s.err != nil {
		return fmt.Errorf("the connection to the Docker daemon broke: %w", s.err)
	}
	return s.ended()
}

// ended makes sure that the end of the output was the command's end.
func (s *session) ended() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	for range 20 { // the daemon takes note of an end a moment after its stream
		found, err := s.api.ExecInspect(ctx, s.exec, client.ExecInspectOptions{})
		if isNotFound(err) || err == nil && !found.Running {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the connection to the Docker daemon broke: %w", err)
		}
		time.Sleep(firstPause)
	}
	return errors.New("the connection to the Docker daemon ended before the command did")
}

// headWriter passes text on and looks at how it begins: a container's runtime says there why it
// cannot start a command.
type headWriter struct {
	io.Writer
	head bytes.Buffer
}

const runtimeFault = "OCI runtime exec failed"

func (h *headWriter) Write(p []byte) (int, error) {
	const most = 1 << 10
	if room := most - h.head.Len(); room > 0 {
		h.head.Write(p[:min(len(p), room)])
	}
	return h.Writer.Write(p)
}

func (h *headWriter) fault() string {
	if !strings.HasPrefix(h.head.String(), runtimeFault) {
		return ""
	}
	line, _, _ := strings.Cut(h.head.String(), "\n")
	return strings.TrimSpace(line)
}
