package console

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/stat"
)

// FlagErrors are all errors of a command line's flags, of which the parser gives the first.
func FlagErrors(fs *pflag.FlagSet, args []string, first error) error {
	var errs []error
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, value, given := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if !strings.HasPrefix(args[i], "--") {
			continue
		}
		f := fs.Lookup(name)
		switch {
		case f == nil:
			errs = append(errs, unknownFlag(fs, name))
			continue
		case given:
		case f.NoOptDefVal != "":
			value = f.NoOptDefVal
		case i+1 == len(args):
			errs = append(errs, fmt.Errorf("--%s needs a value", name))
			continue
		default:
			i++
			value = args[i]
		}
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, invalidValue(f, value, err))
		}
	}
	if len(errs) == 0 { // a short flag
		return first
	}
	return errors.Join(errs...)
}

func unknownFlag(fs *pflag.FlagSet, name string) error {
	var known []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, "--"+f.Name)
		}
	})
	if near := stat.Nearest("--"+name, known); near != "" {
		return fmt.Errorf("unknown flag: --%s: did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown flag: --%s", name)
}

// invalidValue says what a flag takes, where its parser speaks of Go.
func invalidValue(f *pflag.Flag, value string, err error) error {
	takes := map[string]string{
		"int": "a whole number", "uint64": "a whole number from 0", "float64": "a number", "bool": "true or false", "duration": "a time such as 90s or 5m",
	}[f.Value.Type()]
	if takes == "" {
		return fmt.Errorf("--%s %q: %w", f.Name, value, err)
	}
	return fmt.Errorf("--%s is %q: it must be %s", f.Name, value, takes)
}
