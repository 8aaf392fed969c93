package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"perflab/internal/deploy/docker"
	"perflab/internal/hardware"
	"perflab/internal/input"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/selfcheck"
	"perflab/internal/version"
)

// Probes is all that a look asks of the machine.
type Probes struct {
	Program   version.Info
	CPUs      int                                                                        // that this process may use
	Find      func(program string) string                                                // its path, "" where it is not there
	Run       func(ctx context.Context, argv ...string) (stdout, stderr string, e error) // a program that is not there is hardware.ErrNoTool
	Read      func(path string) (string, error)                                          // a small file
	Dir       func(path string) fs.FS                                                    // a directory
	Env       func(name string) string                                                   //
	Home      string                                                                     // the user's directory, "" where there is none
	Ask       func(ctx context.Context, base string) (info openai.Info, err error)       // a server
	Docker    func(ctx context.Context) (docker.Daemon, error)                           //
	OpenFiles func() (uint64, error)                                                     // that a process may have open
	SelfCheck func() *result.SelfCheck                                                   // nil where there is none
}

// System is this machine.
func System(program version.Info) Probes {
	home, _ := os.UserHomeDir() // "" where there is none
	return Probes{
		Program: program, CPUs: runtime.GOMAXPROCS(0), Env: os.Getenv, Home: home,
		Find:      find,
		Run:       run,
		Read:      func(path string) (string, error) { b, err := input.File(path, mostFile); return string(b), err },
		Dir:       os.DirFS,
		Ask:       ask,
		Docker:    docker.Look,
		OpenFiles: load.LiftFileLimit,
		SelfCheck: func() *result.SelfCheck { return selfcheck.Load(program.Version) },
	}
}

// mostFile is the size of a file that is read: /proc/cpuinfo of a machine of 512 processors has
// under a megabyte.
const mostFile = 8 << 20

func find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

// run runs a command until ctx ends. A driver that hangs may keep it for ever: it is left then.
func run(ctx context.Context, argv ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second // for what it started and left with its output
	err = cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		err = hardware.ErrNoTool
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("%s: %w", argv[0], context.Cause(ctx))
	case err != nil:
		err = fmt.Errorf("%s: %w: %s", argv[0], err, firstLine(errs.String()+out.String()))
	}
	return out.String(), errs.String(), err
}

// ask asks a server what it serves. No key is sent.
func ask(ctx context.Context, base string) (openai.Info, error) {
	c, err := openai.New(openai.Config{BaseURL: base})
	if err != nil {
		return openai.Info{}, err
	}
	defer c.Close()
	return c.Probe(ctx)
}

// line is the first line of a file, "" where it is not there.
func (p Probes) line(path string) string {
	text, err := p.Read(path)
	if err != nil {
		return ""
	}
	return firstLine(text)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}
