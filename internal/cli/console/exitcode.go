package console

import "errors"

// Exit codes; package cli says which error has which.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitMissed      = 3 // an SLO was missed, a regression or an error found
	ExitVoid        = 4 // the measurement cannot be believed
	ExitInterrupted = 130
)

// Errors of measurements that are sound and not good enough, which have the exit code of that.
var (
	ErrMissed     = errors.New("SLO missed")
	ErrRegression = errors.New("the comparison does not pass")
	// ErrWorse says that a configuration is worse than it was.
	ErrWorse = errors.New("the history does not pass")
)
