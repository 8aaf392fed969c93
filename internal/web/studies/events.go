package studies

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/web/page"
)

// follower is one page that follows a study.
type follower struct {
	stream *page.Stream
	shown  string         // state and shape that the page was drawn of
	set    map[string]any // what it was told
	log    string         // the log that it has
	end    int64          // where that ends
	n      uint64         // the last scene
	read   int            // readings of it
	load   string
}

// streamStudy tells a page what changes. Only what is not in the page yet is sent: a browser that comes
// back says by Last-Event-ID which lines of the log it has.
func (s *screen) streamStudy(w http.ResponseWriter, r *http.Request) error {
	sub, err := s.subject(r)
	if err != nil {
		return err
	}
	if sub.Dir == "" {
		return page.NotFound("the study lies on another machine: it is not followed here")
	}
	x, leave := s.watchers.watch(sub.Dir)
	defer leave()
	stream, err := page.OpenStream(w)
	if err != nil {
		return nil // whoever asked has left
	}
	f := &follower{stream: stream, shown: r.URL.Query().Get("at"), set: map[string]any{}}
	f.log, f.end = lastSeen(r)
	beat := page.Beat()
	defer beat.Stop()
	launches := s.launchVersions(r.Context())
	for {
		now, next := x.scene()
		state := stateOf(s.again(sub), now)
		if err := f.tell(state, now); err != nil || state == string(outcome.Finished) {
			return nil // it has ended, or the page was closed
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-next:
		case <-launches:
		case <-beat.C:
			if err := stream.Send("alive", "", struct{}{}); err != nil {
				return nil
			}
		}
	}
}

// lastSeen is which log a page has, and up to where.
func lastSeen(r *http.Request) (name string, end int64) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("last_event_id")
	}
	at, name, ok := strings.Cut(id, ":")
	end, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return "", 0
	}
	return name, end
}

// again is a study with its launch as it is now.
func (s *screen) again(sub subject) subject {
	if sub.Launch == nil || s.Queue == nil {
		return sub
	}
	if l, err := s.Queue.Get(sub.Launch.ID); err == nil {
		sub.Launch = &l
	}
	return sub
}

// launchVersions is a channel that says that launches have changed, until the context ends.
func (s *screen) launchVersions(ctx context.Context) <-chan struct{} {
	if s.Queue == nil {
		return nil
	}
	out := make(chan struct{})
	go func() { // it ends with the request
		version := s.Queue.Version()
		for {
			v, err := s.Queue.Wait(ctx, version)
			if err != nil {
				return
			}
			version = v
			select {
			case out <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// tell sends what a page does not have of a scene.
func (f *follower) tell(state string, now *scene) error {
	err := f.texts(now)
	if now.n != f.n || f.shown != stateAnd(state, now.shape) {
		err = errors.Join(err, f.lines(now), f.charts(now))
	}
	f.n = now.n
	if at := stateAnd(state, now.shape); f.shown != at && err == nil {
		f.shown = at
		err = f.stream.Send("reload", "", struct{}{})
	}
	if state == string(outcome.Finished) && err == nil {
		err = f.stream.Send("end", "", map[string]string{"text": "the study has come to its end"})
	}
	return err
}

// texts sends those that changed.
func (f *follower) texts(now *scene) error {
	changed := map[string]any{}
	for name, v := range now.set {
		if old, ok := f.set[name]; !ok || old != v {
			changed[name] = v
		}
	}
	f.set = now.set
	if len(changed) == 0 {
		return nil
	}
	return f.stream.Send("set", "", changed)
}

// lines sends those of the log that the page does not have.
func (f *follower) lines(now *scene) error {
	var lines []string
	if now.logName != f.log && now.logName != "" {
		lines = append(lines, "--- "+now.logName+" ---")
		f.log, f.end = now.logName, 0
	}
	for _, l := range now.log {
		if l.end > f.end {
			lines = append(lines, l.text)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	f.end = max(f.end, lastEnd(now))
	return f.stream.Send("append", position(now), map[string]any{"log": "engine", "lines": lines})
}

func lastEnd(now *scene) int64 {
	if len(now.log) == 0 {
		return 0
	}
	return now.log[len(now.log)-1].end
}

// charts has those drawn anew that have more.
func (f *follower) charts(now *scene) error {
	if len(now.readings) == f.read && now.load == f.load {
		return nil
	}
	f.read, f.load = len(now.readings), now.load
	for _, name := range now.charts {
		if err := f.stream.Send("figure", "", map[string]string{"name": name}); err != nil {
			return err
		}
	}
	return nil
}
