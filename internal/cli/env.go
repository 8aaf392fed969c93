package cli

import (
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/term"
)

// Env is the process as a value, so that a whole command runs inside a test.
type Env struct {
	Args     []string
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Self     string // path of this program, started again as simulated engine
	Version  string
	Terminal bool       // standard error is a terminal
	Width    func() int // of that terminal now, which its user may change; nil: unknown
}

// System is the real process.
func System(args []string) Env {
	e := Env{
		Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Version: version(), Terminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			w, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 0
			}
			return w
		},
	}
	e.Self, _ = os.Executable() // empty when unknown; only simulated engines need it and say so
	return e
}

// columns is the width of the terminal now, or a guess.
func (e Env) columns() int {
	if e.Width != nil {
		if w := e.Width(); w > 0 {
			return w
		}
	}
	return 100
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
