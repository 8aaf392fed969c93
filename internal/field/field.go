// Package field has the error of one value that a user can mend: where it
// stands and what is wrong with it.
//
//	return field.Errorf("dataset.path", "no such file")
//
// A path names keys from the outside in, joined by dots; an element of a list
// has its index in brackets: workloads[1].rate. Who shows the error knows what
// a path is called there: cli makes a flag of it, study a line and a column.
// Nobody looks for names in a message: a reason that has to name another value
// puts its path in brackets, as Go's doc comments do with names.
//
//	return field.Errorf("request_rate", "does not apply with [steps], which has the rates")
//
// The package is apart because workload, tune and study make such errors, and
// none of them may import another.
package field

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Error is what is wrong with one value.
type Error struct {
	Path   string // of the value; empty: the whole
	Reason string // what is wrong and what to do, without the name of the value

	format string // of Reason, in which paths of other values stand in brackets; "": it names none
	args   []any
}

// Error is the path and the reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Says returns the reason with the other values that it names spelled by a
// function from paths, as "--request-rate" for request_rate.
func (e *Error) Says(spell func(path string) string) string {
	if e.format == "" {
		return e.Reason
	}
	return fmt.Sprintf(Spell(e.format, spell), e.args...)
}

// Spell returns a text with the values that it names in brackets spelled by a
// function from paths.
func Spell(text string, spell func(path string) string) string {
	return mention.ReplaceAllStringFunc(text, func(m string) string { return spell(m[1 : len(m)-1]) })
}

// mention is how a reason names another value.
var mention = regexp.MustCompile(`\[[a-z][a-z0-9_]*\]`)

// Errorf returns an error of the value at a path.
func Errorf(path, format string, args ...any) error {
	e := &Error{Path: path}
	if mention.MatchString(format) {
		e.format, e.args = format, args
		format = Spell(format, func(path string) string { return path })
	}
	e.Reason = fmt.Sprintf(format, args...)
	return e
}

// Index is the path of an element of a list.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Join is the path of a value below another; either may be empty.
func Join(path, below string) string {
	switch {
	case path == "":
		return below
	case below == "" || strings.HasPrefix(below, "["):
		return path + below
	}
	return path + "." + below
}

// Under puts every Error in err, joined ones too, below a path. Other errors
// become one of the path itself.
func Under(path string, err error) error {
	var out []error
	for _, e := range All(err) {
		below := *e
		below.Path = Join(path, e.Path)
		out = append(out, &below)
	}
	return errors.Join(out...)
}

// All returns the errors that are joined in err, in order. One without a path
// has its message as the reason.
func All(err error) []*Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*Error
		for _, e := range joined.Unwrap() {
			out = append(out, All(e)...)
		}
		return out
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return []*Error{e}
	}
	return []*Error{{Reason: err.Error()}}
}
