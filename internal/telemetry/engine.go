package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"perflab/internal/engine/meters"
	"perflab/internal/gauge"
	"perflab/internal/prometheus"
)

// maxFailures is how often in a row an engine's metrics may fail before any was
// read: then there are none.
const maxFailures = 3

// Engine samples the metrics of an engine, the index-th of its source. scrape returns the page in
// Prometheus's text format or TensorRT-LLM's list of iterations, or says in a sentence why there is none.
func Engine(source string, index int, every time.Duration, scrape func(context.Context) (page string, err error)) Source {
	return func(ctx context.Context, emit Emit) {
		read, told, failed := false, false, 0
		repeat(ctx, every, func(ctx context.Context) bool {
			values, err := engineValues(ctx, scrape)
			at := time.Now()
			switch {
			case err == nil:
				read, failed = true, 0
				emit(at, gauge.Reading{Source: source, Index: index, Values: values})
				return true
			case errors.Is(err, errNothing), ctx.Err() != nil: // the latter at the end of the run
				return true
			case !told:
				told = true
				emit(at, gauge.Reading{Source: source, Index: index, Error: err.Error()})
			}
			failed++
			return read || failed < maxFailures
		})
	}
}

// errNothing is no failure: nothing happened since the page was read last.
var errNothing = errors.New("the server's list of iterations is empty")

// errUnknown says that a page is there and tells nothing.
var errUnknown = errors.New("the server has metrics, and none of them is a name that an engine of the catalogue uses")

func engineValues(ctx context.Context, scrape func(context.Context) (string, error)) (map[string]float64, error) {
	page, err := scrape(ctx)
	if err != nil {
		return nil, err
	}
	var samples []prometheus.Sample
	if strings.HasPrefix(strings.TrimSpace(page), "[") {
		samples, err = meters.IterationSamples([]byte(page))
		if err != nil {
			return nil, err
		} else if samples == nil {
			return nil, errNothing
		}
	} else {
		samples = prometheus.Parse(page, notBucket)
	}
	e, ok := meters.EngineOf(samples)
	if !ok {
		return nil, errUnknown
	}
	return meters.Common(e, samples), nil
}

// notBucket leaves out the buckets of histograms: nothing here is made of them.
func notBucket(name string) bool { return !strings.HasSuffix(name, "_bucket") }
