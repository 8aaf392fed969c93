package deploy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Validate says what keeps the specification from being started as processes
// or containers.
func (s Spec) Validate() error {
	var errs []error
	if len(s.Replicas) == 0 {
		errs = append(errs, errors.New("a deployment needs at least one replica"))
	}
	if s.Dir == "" {
		errs = append(errs, errors.New("a deployment needs a directory for its logs"))
	}
	if s.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %v is negative", s.Timeout))
	}
	if s.Silence < 0 {
		errs = append(errs, fmt.Errorf("silence %v is negative", s.Silence))
	}
	if s.Health != "" && !strings.HasPrefix(s.Health, "/") {
		errs = append(errs, fmt.Errorf("health path %q must begin with /", s.Health))
	}
	for i, r := range s.Replicas {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("replica %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (m Member) validate() error {
	if len(m.Argv) == 0 || m.Argv[0] == "" {
		return errors.New("the command is empty")
	}
	for _, e := range m.Env {
		if k, _, ok := strings.Cut(e, "="); !ok || k == "" {
			return fmt.Errorf("environment entry %q is not KEY=value", k)
		}
	}
	names := make([]string, len(m.Files))
	for i, f := range m.Files {
		if f.Name == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, "/\\\x00{}") {
			return fmt.Errorf("%q is no plain file name", f.Name)
		}
		if slices.Contains(names[:i], f.Name) {
			return fmt.Errorf("two files are named %s", f.Name)
		}
		names[i] = f.Name
	}
	for _, text := range m.texts() {
		if strings.ContainsRune(text, 0) {
			return errors.New("the command, its environment or a file of it has a NUL byte")
		}
		if err := validateMarks(text, names); err != nil {
			return err
		}
	}
	return nil
}

// plainName is what processes and their ports may be named: a part of file names and labels.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// validateMarks finds what is wrong with the placeholders of a text.
func validateMarks(text string, files []string) error {
	for _, mark := range []string{namedPortMark, fileMark} {
		for _, rest := range strings.Split(text, mark)[1:] {
			name, _, closed := strings.Cut(rest, "}")
			switch {
			case !closed:
				return fmt.Errorf("the placeholder %q is not closed: } is missing", mark+name)
			case mark == namedPortMark && !plainName.MatchString(name):
				return fmt.Errorf("the placeholder %s%s} has no name of letters, digits, dots and dashes", mark, name)
			case mark == fileMark && len(files) == 0:
				return fmt.Errorf("the placeholder %s%s} names a file of the process, and there are none", mark, name)
			case mark == fileMark && !slices.Contains(files, name):
				return fmt.Errorf("the placeholder %s%s} names none of its files, which are %s", mark, name, strings.Join(files, ", "))
			}
		}
	}
	return nil
}

func (r Replica) validate() error {
	if err := r.Member.validate(); err != nil {
		return err
	}
	for i, p := range r.Peers {
		switch err := p.Member.validate(); {
		case !plainName.MatchString(p.Name):
			return fmt.Errorf("%q is no name for a process: use letters, digits, dots and dashes", p.Name)
		case slices.ContainsFunc(r.Peers[:i], func(o Peer) bool { return o.Name == p.Name }):
			return fmt.Errorf("two processes are named %s", p.Name)
		case err != nil:
			return fmt.Errorf("%s: %w", p.Name, err)
		case p.Serves != "" && !slices.Contains(r.portNames(), p.Serves):
			return fmt.Errorf("%s serves on the port %q, and no {port:%[2]s} stands in a command: give it its port", p.Name, p.Serves)
		}
	}
	if !strings.Contains(strings.Join(r.Argv, " ")+strings.Join(r.Env, " "), portMark) {
		return fmt.Errorf("the command has no %s: give the engine its port, as in --port %[1]s", portMark)
	}
	return nil
}
