package api

import (
	"errors"
	"io/fs"
	"math"
	"net/http"

	"perflab/internal/dirdoc"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/study"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
	"perflab/internal/web/upload"
)

// problem gives an error the status that clients go by.
func problem(err error) error {
	if err == nil {
		return nil
	}
	status, hint := 0, ""
	switch {
	case is[*store.NotFoundError](err), is[*launch.NotFoundError](err), is[*upload.NotFoundError](err), is[*dirdoc.NothingError](err):
		status = http.StatusNotFound
	case is[*filter.Error](err), is[*study.Error](err), is[*place.NameError](err), is[*dirdoc.OptionError](err):
		status = http.StatusBadRequest
	case is[*store.InUseError](err), is[*store.ReadOnlyError](err), is[*launch.StateError](err), is[*launch.ReadOnlyError](err), errors.Is(err, fs.ErrExist):
		status = http.StatusConflict
	case is[*launch.FullError](err):
		status, hint = http.StatusTooManyRequests, "Wait until one of them has ended, or cancel one."
	case is[*place.FullError](err):
		status = http.StatusInsufficientStorage
	case is[*upload.BusyError](err):
		status = http.StatusLocked
	case is[*upload.RefusedError](err), is[*upload.DigestError](err):
		status = http.StatusUnprocessableEntity
	default:
		return err // page knows the rest
	}
	return &page.Problem{Status: status, Text: err.Error(), Hint: hint}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// known is a figure where there is one.
func known(v float64, err error) float64 {
	if err != nil {
		return math.NaN()
	}
	return v
}

// served makes the errors of a handler problems.
func served(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error { return problem(serve(w, r)) }
}
