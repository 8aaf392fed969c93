package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perflab/internal/redact"
	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// mostRows is how many launches a page of the queue has.
const mostRows = 50

// row is a launch as a page shows it.
type row struct {
	launch.Launch
	Page string // of what it made; "": there is nothing yet
	May  may

	CanStop   bool // it runs
	CanCancel bool // it waits
	CanResume bool // it can go on
	CanRetry  bool
	CanFirst  bool // it waits behind another
}

// Since is when it came into the state that it is in.
func (r row) Since() time.Time {
	a := r.Last()
	switch {
	case r.State == launch.Running:
		return a.Started
	case r.State == launch.Cancelled && r.Cancel != nil:
		return r.Cancel.At
	case r.State == launch.Ended && a != nil && a.Ended != nil:
		return *a.Ended
	}
	return r.Queued
}

// Stands says in words how far it is.
func (r row) Stands() string {
	switch {
	case r.State == launch.Queued && r.Waits != "":
		return "waits " + r.Waits
	case r.State == launch.Queued:
		return "starts in a moment"
	case r.Stopping():
		return "is being stopped by " + r.Last().Stops[0].Who
	case r.State == launch.Running:
		return "runs"
	case r.State == launch.Cancelled:
		if a := r.Cancel; a != nil && a.Who != "" {
			return "cancelled by " + a.Who + " before it began"
		}
		return "cancelled before it began"
	}
	if a := r.Last(); a != nil && a.Exit != nil {
		return a.Exit.Meaning
	}
	if r.Fault != "" {
		return "failed"
	}
	return "has ended"
}

// Tone is the class of its state.
func (r row) Tone() string {
	switch r.State {
	case launch.Running:
		return "running"
	case launch.Queued, launch.Cancelled:
		return ""
	}
	if a := r.Last(); r.Fault == "" && a != nil && a.Exit != nil && a.Exit.Code != nil {
		switch *a.Exit.Code {
		case 0:
			return "sound"
		case 3, 130:
			return "noted"
		}
	}
	return "void"
}

// rowOf is a launch with where it leads.
func (s *screen) rowOf(ctx context.Context, l launch.Launch, m may) row {
	ended := l.State == launch.Ended || l.State == launch.Cancelled
	r := row{Launch: l, May: m, CanStop: l.State == launch.Running, CanCancel: l.State == launch.Queued, CanRetry: ended, CanFirst: l.Position > 1}
	r.CanResume = l.Kind == launch.Study && l.State == launch.Ended && !done(l)
	if len(l.Attempts) > 0 {
		r.Page = s.pageOf(ctx, l)
	}
	return r
}

// done reports whether the last attempt came to its end.
func done(l launch.Launch) bool {
	a := l.Last()
	return a != nil && a.Exit != nil && a.Exit.Code != nil && (*a.Exit.Code == 0 || *a.Exit.Code == 3)
}

// pageOf is the page of what a launch made; "" while the index does not have it.
func (s *screen) pageOf(ctx context.Context, l launch.Launch) string {
	e, err := s.Store.Get(ctx, l.Dir)
	if err != nil {
		return ""
	}
	return address(e)
}

// address is the page of an entry.
func address(e store.Entry) string {
	if e.Kind == scan.Study {
		return "/study/" + e.ID
	}
	return "/run/" + e.ID
}

// queueView is what the page of the queue shows.
type queueView struct {
	May       may
	Rows      []row
	Total     int
	From, To  int // shown, from 1
	Prev      string
	Next      string
	Running   int
	Waiting   int
	Simulated bool
}

func (s *screen) showQueue(w http.ResponseWriter, r *http.Request) error {
	v := queueView{May: s.may(r)}
	if s.Queue != nil {
		all := s.Queue.List()
		from, err := strconv.Atoi(r.URL.Query().Get("from"))
		if err != nil || from < 0 || from >= len(all) {
			from = 0
		}
		v.Total, v.From, v.To = len(all), from+1, min(from+mostRows, len(all))
		for _, l := range all[from:v.To] {
			v.Rows = append(v.Rows, s.rowOf(r.Context(), l, v.May))
		}
		for _, l := range all {
			v.Running += count(l.State == launch.Running)
			v.Waiting += count(l.State == launch.Queued)
		}
		if v.To < len(all) {
			v.Next = "/launch?from=" + strconv.Itoa(v.To)
		}
		if from == mostRows {
			v.Prev = "/launch"
		} else if from > 0 {
			v.Prev = "/launch?from=" + strconv.Itoa(max(0, from-mostRows))
		}
	}
	return s.Pages.Show(w, r, s.list, page.View{Title: "Launch", Nav: "launch", Data: v})
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// streamQueue tells that launches have changed.
func (s *screen) streamQueue(w http.ResponseWriter, r *http.Request) error {
	return s.stream(w, r, func(*page.Stream) (bool, error) { return true, nil })
}

// stream sends a reload for every change of the queue, and what next says besides. It ends when
// next says that nothing more comes.
func (s *screen) stream(w http.ResponseWriter, r *http.Request, next func(*page.Stream) (goOn bool, err error)) error {
	if s.Queue == nil {
		return page.NotFound("nothing is launched here")
	}
	version := s.Queue.Version()
	st, err := page.OpenStream(w)
	if err != nil {
		return err
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	beat := page.Beat()
	defer beat.Stop()
	for {
		goOn, err := next(st)
		if err != nil || !goOn {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), lookEvery)
		now, err := s.Queue.Wait(ctx, version)
		cancel()
		switch {
		case r.Context().Err() != nil:
			return nil
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return nil // the server ends
		case now != version:
			version = now
			if err := st.Send("reload", "", struct{}{}); err != nil {
				return err
			}
		}
		select {
		case <-beat.C:
			if err := st.Send("alive", "", struct{}{}); err != nil {
				return err
			}
		default:
		}
	}
}

// lookEvery is how often a log is looked at.
const lookEvery = time.Second

// acts are what can be done to a launch.
var acts = map[string]func(q *launch.Queue, id, who string) (launch.Launch, error){
	"cancel": (*launch.Queue).Cancel,
	"stop":   (*launch.Queue).Stop,
	"resume": (*launch.Queue).Resume,
	"retry":  (*launch.Queue).Retry,
	"first":  func(q *launch.Queue, id, _ string) (launch.Launch, error) { return q.Move(id, 1) },
}

// act does something to a launch, and leads back.
func (s *screen) act(w http.ResponseWriter, r *http.Request) error {
	do, ok := acts[r.PathValue("act")]
	if !ok {
		return page.NotFound("a launch cannot be asked for " + r.PathValue("act"))
	}
	if err := s.open(); err != nil {
		return err
	}
	id := r.PathValue("id")
	l, err := do(s.Queue, id, guard.From(r.Context()).Name)
	e := trail.Event{Action: r.PathValue("act") + " launch", Object: id, Detail: map[string]string{"name": l.Name}}
	if err != nil {
		e.Outcome, e.Reason = trail.Refused, err.Error()
	}
	if wrong := s.audited(r.Context(), e); err == nil && wrong != nil {
		return wrong
	}
	if err != nil {
		return problem(err)
	}
	http.Redirect(w, r, "/launch/"+l.ID, http.StatusSeeOther)
	return nil
}

// oneView is what the page of one launch shows.
type oneView struct {
	row
	Logs  []log
	Text  string // of the study
	Event string // the newest that the page knows of
}

// log is the end of what a launch said.
type log struct {
	ID, Name, Title, Text string
	Cut                   bool // there is more before it
	Size                  int64
}

// titles are what the logs are called.
var titles = map[launch.Stream]string{launch.Stderr: "What it says as it goes", launch.Stdout: "Its result"}

// shownLog is how much of a log a page has.
const shownLog = 32 << 10

func (s *screen) logOf(id string, stream launch.Stream) (log, int64, error) {
	c, err := s.Queue.Tail(id, stream, -shownLog)
	return log{id, string(stream), titles[stream], redact.Shown(redact.Text(c.Text)), c.Offset > 0, c.Size}, c.Next, err
}

func (s *screen) get(id string) (launch.Launch, error) {
	if s.Queue == nil {
		return launch.Launch{}, page.NotFound("this server launches nothing, and has no launch " + id)
	}
	l, err := s.Queue.Get(id)
	return l, problem(err)
}

func (s *screen) showOne(w http.ResponseWriter, r *http.Request) error {
	l, err := s.get(r.PathValue("id"))
	if err != nil {
		return err
	}
	v := oneView{row: s.rowOf(r.Context(), l, s.may(r))}
	var at [2]int64
	for i, stream := range []launch.Stream{launch.Stderr, launch.Stdout} {
		said, next, err := s.logOf(l.ID, stream)
		if err != nil {
			return problem(err)
		}
		v.Logs, at[i] = append(v.Logs, said), next
	}
	v.Event = eventID(at)
	if l.Kind == launch.Study {
		v.Text, _ = s.Queue.Text(l.ID) // one without its file shows what is known
		v.Text = redact.Shown(redact.Text(v.Text))
	}
	view := page.View{Title: l.Name, Nav: "launch", Data: v}
	if l.Simulated {
		view.Banner = "SIMULATED: engines and devices of this launch are models of them"
	}
	return s.Pages.Show(w, r, s.one, view)
}

// streamOne sends what a launch says as it says it.
func (s *screen) streamOne(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := s.get(id); err != nil {
		return err
	}
	at := eventOf(r)
	tails := []*tail{{stream: launch.Stderr, next: at[0]}, {stream: launch.Stdout, next: at[1]}}
	return s.stream(w, r, func(st *page.Stream) (bool, error) {
		l, err := s.Queue.Get(id)
		if err != nil {
			return false, nil
		}
		for _, t := range tails {
			if err := t.send(s.Queue, id, l.State != launch.Running, func(lines []string) error {
				return st.Send("append", eventID([2]int64{tails[0].at(), tails[1].at()}), map[string]any{"log": string(t.stream), "lines": lines})
			}); err != nil {
				return false, err
			}
		}
		if l.State == launch.Ended || l.State == launch.Cancelled {
			if err := st.Send("reload", "", struct{}{}); err != nil {
				return false, err
			}
			return false, st.Send("end", "", map[string]string{"text": "this launch " + string(l.State)})
		}
		return true, nil
	})
}

// tail follows one log.
type tail struct {
	stream launch.Stream
	next   int64
	rest   string // the beginning of a line whose end has not come
}

// send sends the lines that have come since; at the end also what no line ends.
func (t *tail) send(q *launch.Queue, id string, ended bool, say func(lines []string) error) error {
	for {
		c, err := q.Tail(id, t.stream, t.next)
		if err != nil {
			return nil // it is gone: the page says so when it is loaded anew
		}
		t.next = c.Next
		lines := t.lines(c.Text, ended && c.Next >= c.Size)
		if len(lines) > 0 {
			if err := say(lines); err != nil {
				return err
			}
		}
		if c.Text == "" || c.Next >= c.Size {
			return nil
		}
	}
}

// at is up to where the log was sent.
func (t *tail) at() int64 { return t.next - int64(len(t.rest)) }

// eventID names an event by how far it has come in both logs.
func eventID(at [2]int64) string { return fmt.Sprintf("%d-%d", at[0], at[1]) }

// eventOf is how far a page that asks has come: where it says nothing of it, to the beginning of what a page shows.
func eventOf(r *http.Request) [2]int64 {
	at := [2]int64{-shownLog, -shownLog}
	id := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last_event_id"))
	first, second, ok := strings.Cut(id, "-")
	a, err1 := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(second, 10, 64)
	if ok && err1 == nil && err2 == nil && a >= 0 && b >= 0 {
		at = [2]int64{a, b}
	}
	return at
}

// lines takes a text apart, and keeps what has no end yet.
func (t *tail) lines(text string, all bool) []string {
	var out []string
	t.rest += text
	for {
		line, rest, ok := strings.Cut(t.rest, "\n")
		if !ok {
			break
		}
		out, t.rest = append(out, redact.Shown(redact.Text(line))), rest
	}
	if t.rest != "" && (all || len(t.rest) > shownLog) {
		out, t.rest = append(out, redact.Shown(redact.Text(t.rest))), ""
	}
	return out
}

// sendLog sends a whole log as text, from where it is asked for.
func (s *screen) sendLog(w http.ResponseWriter, r *http.Request) error {
	l, err := s.get(r.PathValue("id"))
	if err != nil {
		return err
	}
	stream := launch.Stream(r.PathValue("stream"))
	if stream != launch.Stderr && stream != launch.Stdout {
		return page.NotFound("a launch has no log " + string(stream))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	t := tail{stream: stream}
	for {
		c, err := s.Queue.Tail(l.ID, stream, t.next)
		if err != nil {
			return problem(err)
		}
		t.next = c.Next
		for _, line := range t.lines(c.Text, c.Text == "" || c.Next >= c.Size) {
			if _, err := w.Write([]byte(line + "\n")); err != nil {
				return nil // who asked has gone
			}
		}
		if c.Text == "" || c.Next >= c.Size {
			return nil
		}
	}
}
