package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/trace"
	"perflab/internal/trace/export"
)

// spanFlags say what is told of calls to other tools.
type spanFlags struct {
	otlp   string
	target export.Target
	to     *export.Exporter // nil: nowhere
}

func (f *spanFlags) add(fs *pflag.FlagSet, s *bench.Spec) {
	fs.BoolVar(&s.Traceparent, "traceparent", false, "send a W3C trace context with each request (header traceparent), another one for each call, which keeps it: the engine's own spans are found by it")
	fs.StringVar(&f.otlp, "otlp", "", "after each run write the spans of its calls: to a file, or to a collector's OTLP/HTTP address, such as http://127.0.0.1:4318; with --traceparent")
}

// parse reads --otlp. Spans without the ids that the requests carried would stand alone, so it has them sent.
func (f *spanFlags) parse(fs *pflag.FlagSet, s *bench.Spec) (err error) {
	if !fs.Changed("otlp") {
		return nil
	}
	if f.otlp == "" {
		return fmt.Errorf("--otlp is empty: give a file, or a collector's OTLP/HTTP address, such as http://127.0.0.1:4318")
	}
	if fs.Changed("traceparent") && !s.Traceparent {
		return fmt.Errorf("--otlp and --traceparent=false do not fit: the spans belong to what the requests carry")
	}
	if f.target, err = export.Parse(f.otlp); err != nil {
		return fmt.Errorf("--otlp: %w", err)
	}
	s.Traceparent = true
	return nil
}

// begin makes ready what writes spans, before any work.
func (f *spanFlags) begin(env console.Env) (err error) {
	if f.otlp == "" {
		return nil
	}
	if f.to, err = f.target.Begin(env.Getenv); err != nil {
		return console.Usage(fmt.Errorf("--otlp: %w", err))
	}
	return nil
}

// spansPatience bounds how long a collector keeps a run's end, whatever it answers.
const spansPatience = 5 * time.Minute

// write writes the spans of a run and says so. A collector that is away costs the spans alone.
func (f *spanFlags) write(ctx context.Context, out *bench.Outcome, say func(format string, args ...any)) {
	if f.to == nil || out == nil {
		return
	}
	// Of a run that was interrupted, too, the spans of what was measured are wanted.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spansPatience)
	defer cancel()
	n, err := f.to.Add(ctx, trace.Run{Header: out.Header, Start: out.Client.Start}, out.All())
	if err == nil {
		say("spans of %s calls: %s", console.Grouped(n), f.target)
		return
	}
	say("perflab: the spans of %s calls were written and then no more: %s; the run is whole: perflab export %s --to otlp writes all of them into a file", console.Grouped(n), err, out.Dir)
}
