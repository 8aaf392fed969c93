// Package console is the process as a command sees it: streams through which no secret gets
// out, lines that are rewritten in place on a terminal, usage errors, flags under headings, and
// files that are written as a whole. It knows nothing of what the commands do.
package console

import (
	"io"
	"os"
	"os/user"

	"golang.org/x/term"

	"perflab/internal/redact"
	"perflab/internal/version"
)

// Env is the process as a value, so that a whole command runs inside a test.
type Env struct {
	Args     []string
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Environ  []string // NAME=value, for the secrets in it
	Self     string   // path of this program, started again as simulated engine
	Version  string
	Terminal bool       // standard error is a terminal
	Asks     bool       // standard input is a terminal, too: somebody can answer
	Width    func() int // of that terminal now, which its user may change; nil: unknown

	Secrets  redact.Values // that came in by environment and flags
	out, err io.Writer     // what Stdout and Stderr write to
}

// Guarded is the process with outputs through which no secret of its
// environment and its flags gets out, and nothing that steers a terminal: what
// servers and files say is shown by every command. What perflab itself tells a
// terminal goes through a [screen], and what is no text through [Env.Data].
func (e Env) Guarded() Env {
	if _, done := e.Stdout.(*redact.Writer); done {
		return e
	}
	known := redact.ValuesOf(e.Args, e.Environ)
	if e.Getenv != nil {
		known.Add(e.Getenv("OPENAI_API_KEY"), redact.Mark)
	}
	e.out, e.err = e.Stdout, e.Stderr
	return e.WithSecrets(known)
}

// WithSecrets is the process with more secrets that do not get out.
func (e Env) WithSecrets(more redact.Values) Env {
	e.Secrets = e.Secrets.Join(more)
	if e.out != nil {
		e.Stdout = redact.NewWriter(e.out, e.Secrets)
	}
	if e.err != nil {
		e.Stderr = redact.NewWriter(e.err, e.Secrets)
	}
	return e
}

// Data is standard output for what is no text.
func (e Env) Data() io.Writer {
	if e.out != nil {
		return e.out
	}
	return e.Stdout
}

// screen is a terminal that perflab steers: it is told nothing but controls,
// and text is made safe before it is shown.
type screen struct {
	to    io.Writer
	clean func(string) string
}

func (e Env) screen() screen {
	if e.err == nil {
		return screen{e.Stderr, e.Secrets.Clean}
	}
	return screen{e.err, e.Secrets.Clean}
}

// control is what a terminal is told to do.
type control string

const (
	clearLine control = "\r\x1b[K"     // from its start
	lineAbove control = "\x1b[A\x1b[K" // to it, and clear it
	nextLine  control = "\r\n"
)

// System is the real process.
func System(args []string) Env {
	e := Env{
		Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Environ: os.Environ(), Version: version.Read().Version, Terminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			w, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 0
			}
			return w
		},
	}
	e.Asks = e.Terminal && term.IsTerminal(int(os.Stdin.Fd()))
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

// User is the user of this process, for what is said of runs and of machines.
func User() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
