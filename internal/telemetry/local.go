package telemetry

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// GPUInterval is how often GPUs are read at least, where the interval is longer:
// throttling comes and goes within a second.
const GPUInterval = 500 * time.Millisecond

// Local are the sources of this machine: its CPU and memory, and its GPUs (those of
// devices; nil: all) where nvidia-smi is installed.
func Local(every time.Duration, devices []string) []Source {
	out := []Source{Host(every)}
	if _, err := exec.LookPath("nvidia-smi"); err == nil {
		out = append(out, GPU("", min(every, GPUInterval), devices, LocalCommand))
	}
	return out
}

// On are the same sources of a machine that commands run on.
func On(node string, every time.Duration, devices []string, run Command) []Source {
	return []Source{RemoteHost(node, every, run), GPU(node, min(every, GPUInterval), devices, run)}
}

// LocalCommand runs a program on this machine.
func LocalCommand(ctx context.Context, argv []string, stdout io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	err := cmd.Run()
	if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		return fmt.Errorf("%s: %w: %.200s", argv[0], err, text)
	} else if err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}
