// Package push brings directories of runs, series, studies and imports to the server of a laboratory, and
// fetches them from it.
//
//	o := push.Options{URL: "https://lab:8790", Token: token}
//	done, err := push.Push(ctx, o, []string{"perflab-out/run-1"}, nil)
//	got, err := push.Pull(ctx, o, "engine=vllm started>7d", "copies", nil)
//
// Invariants: what arrives is what was sent, by the digest of every file, and appears whole or not at
// all; what was cut off goes on where it was, also in another process; what is there already is not sent.
// A directory is only read. A server that is not the one of the fingerprint, or one that is not this
// machine and speaks no TLS, gets no token.
//
// Deliberately absent: directories that are still written, which would arrive as a half.
package push

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"perflab/internal/input"
	"perflab/internal/redact"
)

// TokenVariable is the environment variable that has the token.
const TokenVariable = "PERFLAB_TOKEN"

// Options say where the laboratory is.
type Options struct {
	URL         string        // of the server: https://lab:8790
	Token       string        // "": the server asks for none
	Fingerprint string        // SHA-256 of the server's certificate, where no authority vouches for it
	Patience    time.Duration // for which a server that cannot be reached is asked again; 0: 1 minute
}

// Validate says what is wrong with options; the paths are url and fingerprint.
func (o Options) Validate() error {
	c, err := newClient(o, nil)
	if err == nil {
		c.close()
	}
	return err
}

// Progress is how far a directory has come.
type Progress struct {
	Name        string // of the directory
	File        string // that comes now
	Bytes, Size int64  // that are there, and of all files
	Waiting     string // why nothing comes just now, in a sentence; "": it does
}

// Pushed is a directory that is in the laboratory.
type Pushed struct {
	Dir   string   `json:"dir"`             // on this machine
	Entry string   `json:"entry"`           // its ID
	Place string   `json:"place,omitempty"` // below the root of the server
	There bool     `json:"there"`           // it was there already
	Bytes int64    `json:"bytes"`           // that were sent
	URL   string   `json:"url"`             // of its page
	Left  []string `json:"left,omitempty"`  // what is no plain file, and stays
}

// Pulled is an entry that is on this machine.
type Pulled struct {
	Entry string `json:"entry"`
	Dir   string `json:"dir"`
	There bool   `json:"there"` // it was there already
	Bytes int64  `json:"bytes"` // that came
}

// ReadToken is the token of a file, or where no file is named, that of the environment; "" where there is
// none.
func ReadToken(file string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv(TokenVariable)), nil
	}
	b, err := input.File(file, 4<<10)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("read the token: %s should have one token and nothing else", file)
	}
	return token, nil
}

// Push sends directories, one after another: each is a run, a series, a study or an import, or has some in
// it. What one of them has wrong does not keep the others: the error is of all that could not be sent.
// told is called as it goes, by one goroutine at a time; nil: nobody is told.
func Push(ctx context.Context, o Options, dirs []string, told func(Progress)) ([]Pushed, error) {
	c, err := newClient(o, told)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var out []Pushed
	var errs []error
	for _, dir := range dirs {
		found, err := find(ctx, dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, l := range found {
			done, err := c.push(ctx, l)
			if err != nil {
				errs = append(errs, fmt.Errorf("push %s: %w", l.dir, err))
			} else {
				out = append(out, done)
			}
			if ends(ctx, err) {
				return out, errors.Join(errs...)
			}
		}
	}
	return out, errors.Join(errs...)
}

// ends reports whether an error would be that of everything else too.
func ends(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status == 401 || e.Status == 403
	}
	_, gone := errors.AsType[*UnreachableError](err)
	return gone
}

// Error is what a server said is wrong.
type Error struct {
	Status int
	Text   string
	hint   string
	anew   bool // a file is to be sent again
}

func (e *Error) Error() string { return redact.Shown(e.Text) }

// Hint says what to do.
func (e *Error) Hint() string {
	if e.Status == 401 && e.hint == "" {
		return "Give a token of the laboratory in the environment variable " + TokenVariable + ", or in a file."
	}
	return redact.Shown(e.hint)
}

// UnreachableError says that a server could not be reached for as long as was waited.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the laboratory at %s cannot be reached: %v", e.URL, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }
