package deploy

import (
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
)

// ProgramError is what the maker of containers says of a program, known by its kind for those who ask whether
// another try would help.
type ProgramError struct {
	Err  error
	Kind error // exec.ErrNotFound, fs.ErrNotExist or fs.ErrPermission
}

func (e *ProgramError) Error() string { return e.Err.Error() }

// Unwrap is the kind.
func (e *ProgramError) Unwrap() error { return e.Kind }

// ProgramFaults are how the maker of containers says that a program cannot be started.
type ProgramFaults struct{ NotFound, NotAllowed *regexp.Regexp }

// Explain says what to do about a program that cannot be started, and what kind of error that is; nil where the
// text says something else. where names what it was to run in.
func (f ProgramFaults) Explain(program, where, text string) (help string, kind error) {
	switch {
	case f.NotFound.MatchString(text) && strings.Contains(program, "/"):
		return program + " does not exist in " + where + ": correct the path, or the image", fs.ErrNotExist
	case f.NotFound.MatchString(text):
		return program + " is not on PATH in " + where + ": correct the command, or the image", exec.ErrNotFound
	case f.NotAllowed.MatchString(text):
		return program + " is not executable in " + where + ": correct the path, or the image", fs.ErrPermission
	}
	return "", nil
}
