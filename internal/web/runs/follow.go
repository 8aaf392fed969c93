package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/page"
	"perflab/internal/web/runs/live"
)

// liveView is what the page of an entry shows while it is under way.
type liveView struct {
	Run    bool // else a series, whose runs are shown as they end
	Values map[string]any
	Plots  []livePlot
	Shared bool
}

type livePlot struct{ Name, Title, URL string }

// live is how far an entry has come.
func (s *screen) live(shared bool, e store.Entry) (*liveView, error) {
	v := &liveView{Run: e.Kind == scan.Run, Shared: shared}
	if !v.Run {
		return v, nil
	}
	now, err := s.watch.Look(e.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // then it has just ended: its events say so
		return nil, err
	}
	v.Values = shownLive(now)
	if !shared {
		for _, p := range live.Plots() {
			v.Plots = append(v.Plots, livePlot{p.Name, p.Title, "/run/" + e.ID + "/live/" + p.Name})
		}
	}
	return v, nil
}

// Of is a value of the run as text.
func (v *liveView) Of(name string) any {
	if x := v.Values[name]; x != nil {
		return x
	}
	return page.None
}

// Spent is how much of the run is done, from 0 to 1; nil: time decides.
func (v *liveView) Spent() any { return v.Values["spent"] }

// shownLive are the values of a run as a page shows them, by the names of its elements.
func shownLive(n live.Now) map[string]any {
	v := map[string]any{
		"done": fmt.Sprint(n.Done), "failed": fmt.Sprint(n.Failed), "elapsed": progress.Brief(n.Elapsed),
		"rate": quantity(n.Rate, "req/s", 2), "tokens": quantity(n.TokenRate, "tok/s", 0),
		"ttft": pair(n.TTFT50, n.TTFT99), "tpot": pair(n.TPOT50, n.TPOT99),
		"queue": page.None, "left": page.None, "errors": "none", "behind": "", "spent": nil,
	}
	if n.Planned > 0 {
		v["done"] = fmt.Sprintf("%d of %d", n.Done, n.Planned)
		v["spent"] = math.Min(1, float64(n.Done)/float64(n.Planned))
		if left := progress.Left(n.Done, n.Planned, n.Elapsed); left != "" && n.Behind == 0 {
			v["left"] = strings.TrimSuffix(left, " left")
		}
	}
	if !math.IsNaN(n.Running) {
		v["queue"] = fmt.Sprintf("%.0f running", n.Running)
		if !math.IsNaN(n.Waiting) {
			v["queue"] = fmt.Sprintf("%.0f running, %.0f waiting", n.Running, n.Waiting)
		}
	}
	if len(n.Errors) > 0 {
		v["errors"] = errorsText(n)
	}
	if n.Behind > 0 {
		v["behind"] = fmt.Sprintf("This page is still reading the calls that ended before: %.0f %% are to come.", 100*n.Behind)
	}
	return v
}

func errorsText(n live.Now) string {
	var parts []string
	for _, c := range n.Errors {
		parts = append(parts, fmt.Sprintf("%s %d", c.Class, c.Calls))
	}
	text := strings.Join(parts, ", ")
	if n.LastError != "" {
		text += "; the last: " + n.LastError
	}
	return text
}

func quantity(v float64, unit string, decimals int) string {
	if math.IsNaN(v) {
		return page.None
	}
	return fmt.Sprintf("%.*f %s", decimals, v, unit)
}

// pair are the median and the 99th percentile of a latency.
func pair(p50, p99 float64) string {
	if math.IsNaN(p50) {
		return page.None
	}
	return result.SpanText(spanOf(p50)) + ", p99 " + result.SpanText(spanOf(p99))
}

func spanOf(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// serveLivePlot gives a plot of a run under way, and nothing where it has ended: the page that asked is
// about to be told so.
func (s *screen) serveLivePlot(w http.ResponseWriter, r *http.Request) error {
	e, err := s.entry(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if e.Kind != scan.Run {
		return page.NotFound(e.Called() + " is no run: plots so far are of runs")
	}
	if e.State != scan.Running {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	f, ok, err := s.watch.Figure(e.Dir(), r.PathValue("plot"))
	switch {
	case errors.Is(err, fs.ErrNotExist): // the index is about to see that it has ended
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	case !ok:
		return page.NotFound("there is no plot " + r.PathValue("plot"))
	}
	b, err := f.JSON()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // a browser that left needs none
	return nil
}

// How often a page that is open looks at a run, and draws its plots anew.
const (
	lookEvery = time.Second
	drawEvery = 3 * time.Second
)

// serveRunEvents tells the page of a run, or of a series, what is new as long as it is under way.
func (s *screen) serveRunEvents(w http.ResponseWriter, r *http.Request) error {
	e, err := s.entry(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	out, err := page.OpenStream(w)
	if err != nil {
		return err
	}
	if e.State == scan.Running && e.Kind == scan.Run {
		err = s.followRun(r.Context(), out, e)
	} else if e.State == scan.Running {
		err = s.followParts(r.Context(), out, e)
	}
	if err != nil {
		return nil // the reader left, or the store is closed: the browser comes back
	}
	if err := out.Send("reload", "", struct{}{}); err != nil {
		return nil
	}
	_ = out.Send("end", "", map[string]string{"text": "ended"}) // as above
	return nil
}

// followRun tells what is new of a run until it has ended, and the index knows it.
func (s *screen) followRun(ctx context.Context, out *page.Stream, e store.Entry) error {
	drawn, version := time.Now(), -1
	for {
		now, err := s.watch.Look(e.Dir())
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil || now.Ended:
			return s.settled(ctx, out, e.ID)
		}
		if err := out.Send("set", "", shownLive(now)); err != nil {
			return err
		}
		if time.Since(drawn) >= drawEvery && now.Version != version {
			drawn, version = time.Now(), now.Version
			for _, p := range live.Plots() {
				if err := out.Send("figure", "", map[string]string{"name": p.Name}); err != nil {
					return err
				}
			}
		}
		if !pause(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

// settled waits until the index no longer says that an entry is under way.
func (s *screen) settled(ctx context.Context, out *page.Stream, id string) error {
	for {
		version, err := s.o.Store.Version(ctx)
		if err != nil {
			return err
		}
		e, err := s.o.Store.Get(ctx, id)
		if _, gone := errors.AsType[*store.NotFoundError](err); gone || err == nil && e.State != scan.Running {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.changed(ctx, out, version); err != nil {
			return err
		}
	}
}

// alive is how long a stream says nothing before it says that it lives.
const alive = 10 * time.Second

// changed waits until the index is of another version, and says meanwhile that the stream lives.
func (s *screen) changed(ctx context.Context, out *page.Stream, version int64) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, alive)
		_, err := s.o.Store.Wait(bounded, version)
		quiet := bounded.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !quiet:
			return err
		}
		if err := out.Send("alive", "", struct{}{}); err != nil {
			return err
		}
	}
}

// followParts has the page of a series renewed whenever one of its runs changed, until it has ended.
func (s *screen) followParts(ctx context.Context, out *page.Stream, e store.Entry) error {
	last := ""
	for {
		version, err := s.o.Store.Version(ctx)
		if err != nil {
			return err
		}
		now, err := s.o.Store.Get(ctx, e.ID)
		if err != nil || now.State != scan.Running {
			return ignoreGone(err)
		}
		parts, err := s.o.Store.Parts(ctx, e.ID)
		if err != nil {
			return err
		}
		states := make([]string, len(parts))
		for i, p := range parts {
			states[i] = p.ID + " " + string(p.State)
		}
		slices.Sort(states)
		text := strings.Join(states, "\n")
		event := "alive" // what comes from now on is told
		if last != "" && text != last {
			event = "reload"
		}
		if err := out.Send(event, "", struct{}{}); err != nil {
			return err
		}
		last = text
		if err := s.changed(ctx, out, version); err != nil {
			return err
		}
		if !pause(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

func ignoreGone(err error) error {
	if _, gone := errors.AsType[*store.NotFoundError](err); gone {
		return nil
	}
	return err
}
