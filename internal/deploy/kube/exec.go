package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"perflab/internal/deploy"
	"perflab/internal/redact"
)

// podURL is the address of what the API server offers of a pod, as exec.
func (c *cluster) podURL(pod, what string, query url.Values) *url.URL {
	u := c.core.Get().Namespace(c.namespace).Resource("pods").Name(pod).SubResource(what).URL()
	u.RawQuery = query.Encode()
	return u
}

// stream runs argv in a container and passes its output on. Servers before 1.31 speak SPDY alone.
func (c *cluster) stream(ctx context.Context, pod, container string, argv []string, stdout, stderr io.Writer) error {
	u := c.podURL(pod, "exec", url.Values{"container": {container}, "command": argv, "stdout": {"true"}, "stderr": {"true"}})
	socket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", u.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", u)
	if err != nil {
		return err
	}
	both, err := remotecommand.NewFallbackExecutor(socket, spdy, oldServer)
	if err != nil {
		return err
	}
	// A command that is cut off is no news: perflab does it. The library would log it to the user's terminal.
	return both.StreamWithContext(logr.NewContext(ctx, logr.Discard()), remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
}

// oldServer reports whether a server does not speak WebSocket here.
func oldServer(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// exec runs argv in a container of a pod.
func (c *cluster) exec(ctx context.Context, op, pod, container string, argv []string, stdout io.Writer) error {
	var stderr deploy.Stderr
	err := c.stream(ctx, pod, container, argv, cmp.Or(stdout, io.Discard), &stderr)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		code := exit.Code
		if code > signalBase {
			code = -1 // ended by a signal
		}
		if help, kind := programFaults.Explain(argv[0], "pod "+pod, exit.Error()); kind != nil && code == -1 {
			return &deploy.InfraError{Op: op, Err: &deploy.ProgramError{Err: errors.New(sentence(exit.Error())), Kind: kind}, Help: help, Lasting: true}
		}
		return stderr.Failed(argv, code)
	}
	if help, kind := programFaults.Explain(argv[0], "pod "+pod, err.Error()); kind != nil {
		return &deploy.InfraError{Op: op, Err: &deploy.ProgramError{Err: errors.New(sentence(err.Error())), Kind: kind}, Help: help, Lasting: true}
	}
	return c.explain(op, err)
}

// signalBase is added to a signal's number where a status stands for it.
const signalBase = 128

// open lets a process begin whose container waits at its gate.
func (p *process) open(ctx context.Context, gate string) error {
	op := p.op + ": let " + p.container + " begin"
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := p.exec(ctx, op, p.podName, p.container, []string{"touch", gate}, nil)
		if err == nil {
			return nil
		}
		pod, _ := p.view.pod(p.pod)
		if pod.Pod != nil {
			if _, over := outcomeOf(pod, p.container); over {
				return nil // how it ended is the caller's to see
			}
		}
		infra, ok := errors.AsType[*deploy.InfraError](err)
		if !ok || infra.Lasting || pause == lastPause {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// redacted is a command as it may be shown.
func redacted(argv []string) string { return strings.Join(redact.Argv(argv), " ") }

// oneNode refuses nodes by name: the cluster chooses them.
func oneNode(node string) error {
	if node != "" {
		return fmt.Errorf("the kubernetes runtime knows no machine %s: the cluster chooses nodes", node)
	}
	return nil
}
