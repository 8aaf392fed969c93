package docker

import (
	"context"
	"io"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
)

// labelCommand marks the container of a command; it removes itself when the command ends.
const labelCommand = labelPrefix + "command"

// runOnce runs argv in a container of its own.
func (e *engine) runOnce(ctx context.Context, op string, argv []string, stdout io.Writer) error {
	opts := e.baseOptions(argv, nil)
	opts.Config.AttachStdout, opts.Config.AttachStderr = true, true
	opts.Config.Labels[labelCommand] = "yes"
	opts.HostConfig.AutoRemove = true
	opts.HostConfig.DeviceRequests = e.allGPUs()
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	made, err := e.api.ContainerCreate(whole, opts)
	if err != nil {
		return e.explain(ctx, op+": create a container", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if _, err := e.api.ContainerInspect(ctx, made.ID, client.ContainerInspectOptions{}); !isNotFound(err) {
			_, _ = e.api.ContainerRemove(ctx, made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}) // else it removes itself just now
		}
	}()
	stream, err := e.api.ContainerAttach(ctx, made.ID, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return e.explain(ctx, op+": attach to the container", err)
	}
	defer stream.Close()
	waiting, stop := context.WithCancel(ctx)
	w := e.api.ContainerWait(waiting, made.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	told := false
	defer func() {
		stop()
		if !told {
			exitResult(w)
		}
	}()
	if _, err := e.api.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		return e.explainProgram(ctx, op+": start a container", opts.Config.Entrypoint[0], err)
	}
	stderr := new(deploy.Stderr)
	release := context.AfterFunc(ctx, stream.Close) // ends the copy
	_, copied := stdcopy.StdCopy(stdout, stderr, stream.Reader)
	release()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if copied != nil {
		return e.explain(ctx, op+": read the command's output", copied)
	}
	select {
	case r := <-w.Result:
		told = true
		return exitError(argv, int(r.StatusCode), stderr)
	case err := <-w.Error:
		told = true
		return e.explain(ctx, op+": wait for the command", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// exitError is nil for a command that ended with status 0.
func exitError(argv []string, code int, stderr *deploy.Stderr) error {
	if code == 0 {
		return nil
	}
	if code > signalBase {
		code = -1 // ended by a signal
	}
	return stderr.Failed(argv, code)
}

// signalBase is added to a signal's number where a status stands for it.
const signalBase = 128
