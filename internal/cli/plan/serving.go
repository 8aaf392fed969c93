package plan

import (
	"errors"
	"fmt"
	"strings"

	"perflab/internal/cli/console"
	"perflab/internal/engine"
	"perflab/internal/study"
)

// typed reads a command that stands in these spellings: one that its engine's version,
// where that is given, does not have is refused as the engine refuses it.
func typed(words []string, version string) (engine.Command, error) {
	cmd, err := engine.Parse(words)
	if err != nil {
		return cmd, err
	}
	return ofVersion(cmd, words, version)
}

// ofVersion is a command of those words in a version of its engine, "" for one that nobody says.
func ofVersion(cmd engine.Command, words []string, version string) (engine.Command, error) {
	cmd.Version = version
	if r := cmd.Fit(words...); r != nil {
		return cmd, r
	}
	return cmd, nil
}

// usageUnlessTyped makes a usage error of ours of what neither the engine itself
// would have said nor stands in a study file.
func usageUnlessTyped(err error) error {
	if _, ok := errors.AsType[*engine.Rejection](err); ok {
		return err
	}
	if _, ok := errors.AsType[*engine.UsageError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*study.Error](err); ok {
		return err
	}
	return console.Usage(err)
}

// refuse shows a refusal in the engine's own form and gives its exit status.
func refuse(env console.Env, err error) error {
	if e, ok := errors.AsType[*engine.UsageError](err); ok {
		if e.Exit == 0 { // --help
			fmt.Fprintln(env.Stdout, e.Text)
			return nil
		}
		fmt.Fprintln(env.Stderr, e.Error())
		return console.ExitError{Code: e.Exit}
	}
	if e, ok := errors.AsType[*engine.Rejection](err); ok {
		fmt.Fprintln(env.Stderr, "SIMULATED engine, no GPU is used")
		fmt.Fprintln(env.Stderr, strings.TrimSpace(e.Log))
		fmt.Fprintf(env.Stderr, "perflab: %s\n", e.Reason)
		return console.ExitError{Code: 1}
	}
	return err
}
