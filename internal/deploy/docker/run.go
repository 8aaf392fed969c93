package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
)

// Pauses and limits of watching a container.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
	lostAfter  = 30 * time.Second // without an answer of the daemon a container counts as ended
	logDrain   = 10 * time.Second // for what an ended container has written
)

// run is a container that was started.
type run struct {
	*engine
	id     string
	exited chan struct{} // closed with status and code set, and the log complete
	cancel context.CancelFunc
	watch  sync.WaitGroup

	status string
	code   int
}

var _ deploy.Running = (*run)(nil)

// newRun follows a container that was started; log is closed when it has ended.
func newRun(e *engine, id string, log *os.File) *run {
	ctx, cancel := context.WithCancel(context.Background())
	c := &run{engine: e, id: id, exited: make(chan struct{}), cancel: cancel}
	c.watch.Go(func() { c.follow(ctx, log) })
	return c
}

// follow waits for the container's end and its log's.
func (c *run) follow(ctx context.Context, log *os.File) {
	defer close(c.exited)
	defer log.Close()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	var logs sync.WaitGroup
	logs.Go(func() { c.copyLog(reading, log, ended) })
	c.status, c.code = c.awaitExit(ctx)
	close(ended)
	late := time.AfterFunc(logDrain, stop)
	defer late.Stop()
	logs.Wait()
}

// copyLog writes the container's output, stdout and stderr as they come, until it has
// ended. After a lost connection it goes on where that was.
func (c *run) copyLog(ctx context.Context, log io.Writer, ended <-chan struct{}) {
	since := ""
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		stream, err := c.api.ContainerLogs(ctx, c.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true, Since: since})
		if err == nil {
			_, err = stdcopy.StdCopy(log, log, stream)
			stream.Close()
			since = time.Now().UTC().Format(time.RFC3339Nano)
			if err == nil {
				return
			}
		}
		if isNotFound(err) || ctx.Err() != nil {
			return
		}
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// awaitExit returns how the container ended.
func (c *run) awaitExit(ctx context.Context) (status string, code int) {
	lost := time.Time{}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		code, err := c.wait(ctx)
		switch {
		case err == nil:
			return c.describe(ctx, code)
		case ctx.Err() != nil:
			return "status unknown", -1
		case isNotFound(err):
			return "status unknown: the container was removed", -1
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > lostAfter:
			return fmt.Sprintf("status unknown: the Docker daemon has not answered for %v", lostAfter), -1
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// wait blocks until the container does not run.
func (c *run) wait(ctx context.Context) (code int, err error) {
	w := c.api.ContainerWait(ctx, c.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case r := <-w.Result:
		if r.Error != nil && r.Error.Message != "" {
			return 0, errors.New(r.Error.Message)
		}
		return int(r.StatusCode), nil
	case err := <-w.Error:
		return 0, err
	case <-ctx.Done():
		exitResult(w)
		return 0, ctx.Err()
	}
}

// describe says how a container ended, and whether it was for want of memory.
func (c *run) describe(ctx context.Context, code int) (string, int) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := c.api.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
	oom := err == nil && found.Container.State != nil && found.Container.State.OOMKilled
	return exitText(code, oom), code
}

// exitText is "exit status 137 (signal: killed)".
func exitText(code int, outOfMemory bool) string {
	text := "exit status " + strconv.Itoa(code)
	const base, signals = 128, 65
	switch {
	case outOfMemory:
		text += " (the kernel ended it: out of memory)"
	case code > base && code < base+signals:
		text += " (signal: " + syscall.Signal(code-base).String() + ")"
	}
	return text
}

func (c *run) Exited() <-chan struct{} { return c.exited }

// Status is "exit status 1".
func (c *run) Status() (string, int) { return c.status, c.code }

// Record holds the container's id and where it is.
func (c *run) Record() deploy.Record { return deploy.Record{ID: c.id, Engine: c.api.DaemonHost()} }

// URL is a port of the Docker host.
func (c *run) URL(_ context.Context, port int) (string, error) {
	return "http://" + net.JoinHostPort(c.address, strconv.Itoa(port)), nil
}

// Stop sends the image's stop signal, SIGKILL when the grace is over or hurry is closed,
// and removes the container and its volumes.
func (c *run) Stop(grace time.Duration, hurry <-chan struct{}) error {
	defer c.watch.Wait()
	defer c.cancel()
	if err := c.kill(c.stopSignal()); err == nil {
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-c.exited:
		case <-late.C:
		case <-hurry:
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	select {
	case <-c.exited:
	default: // so that the log gets its end before the container goes
		_ = c.kill("KILL")
		select {
		case <-c.exited:
		case <-time.After(c.patience / 2):
		}
	}
	if err := c.remove(ctx, c.id); err != nil {
		return &deploy.InfraError{
			Op: "end container " + shortID(c.id), Err: err,
			Help: "when the Docker daemon answers, the next start ends it, or docker rm -f " + shortID(c.id),
		}
	}
	return nil
}

// stopSignal is what the image wants to be stopped by; "" where it cannot be learnt.
func (c *run) stopSignal() string {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	found, err := c.api.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
	if err != nil || found.Container.Config == nil || found.Container.Config.StopSignal == "" {
		return "TERM"
	}
	return found.Container.Config.StopSignal
}

// kill sends a signal to the container's first process.
func (c *run) kill(signal string) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_, err := c.api.ContainerKill(ctx, c.id, client.ContainerKillOptions{Signal: signal})
	return err
}

// remove ends a container, where it still runs, and removes it with its volumes. It tries
// until ctx ends; one that is gone is no error.
func (e *engine) remove(ctx context.Context, id string) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || isNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("it cannot be removed: " + e.text(err))
		case <-time.After(pause):
		}
	}
}

// exitResult takes what a wait ends with, soon, for its ctx has ended: else it would hold a
// goroutine and a connection for ever.
func exitResult(w client.ContainerWaitResult) {
	select {
	case <-w.Result:
	case <-w.Error:
	}
}
