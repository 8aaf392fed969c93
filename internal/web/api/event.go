package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// Change is an event of the stream: something is no longer as it was.
type Change struct {
	Version  int64 `json:"version"`            // of the index, or of the queue since this server started
	Entries  *int  `json:"entries,omitempty"`  // of "entries": how many there are
	Running  *int  `json:"running,omitempty"`  // of "launches"
	Waiting  *int  `json:"waiting,omitempty"`  // of "launches"
	Finished *int  `json:"finished,omitempty"` // of "launches"

	event string
}

// events tells of changes until the client leaves. A client that comes back says by Last-Event-ID which
// version of the index it knows, and is told at once where that is another one now.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	s, err := page.OpenStream(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	changes := make(chan Change)
	tell := func(c Change) bool {
		select {
		case changes <- c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	knows, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil {
		knows = -1
	}
	wait.Go(func() { a.watchEntries(ctx, knows, tell, cancel) })
	if a.o.Queue != nil {
		wait.Go(func() { a.watchLaunches(ctx, tell, cancel) })
	}
	beat := page.Beat()
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			err = s.Alive()
		case c := <-changes:
			id := ""
			if c.Entries != nil {
				id = strconv.FormatInt(c.Version, 10)
			}
			err = s.Send(c.event, id, c)
		}
		if err != nil {
			return nil // the client is gone
		}
	}
}

// watchEntries tells of new versions of the index. Where it cannot be read the stream ends, and the client
// opens it again.
func (a *API) watchEntries(ctx context.Context, knows int64, tell func(Change) bool, end func()) {
	for {
		v, err := a.o.Store.Wait(ctx, knows)
		if err != nil {
			end()
			return
		}
		n := a.entries()
		c := Change{Version: v, event: "entries", Entries: new(int(n))}
		if knows = v; !tell(c) {
			return
		}
	}
}

func (a *API) watchLaunches(ctx context.Context, tell func(Change) bool, end func()) {
	for v := a.o.Queue.Version(); ; {
		c := Change{Version: int64(v), event: "launches", Running: new(0), Waiting: new(0), Finished: new(0)}
		for _, l := range a.o.Queue.List() {
			switch l.State {
			case launch.Running:
				*c.Running++
			case launch.Queued:
				*c.Waiting++
			default:
				*c.Finished++
			}
		}
		if !tell(c) {
			return
		}
		var err error
		if v, err = a.o.Queue.Wait(ctx, v); err != nil {
			end()
			return
		}
	}
}
