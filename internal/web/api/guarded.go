package api

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

func (a *API) guardRoutes() []page.Route {
	return []page.Route{{
		Pattern: "GET /api/v1/events", Role: guard.Read, Stream: true, Serve: a.events,
		Doc: page.Doc{Summary: "A stream of server-sent events: entries, whenever the index changes, and launches, whenever one of them does. The data of each is what stands here.", Answer: Change{},
			Query:   []page.Parameter{{Name: "Last-Event-ID", Header: true, Doc: "The version of the index that the client knows."}},
			Answers: "text/event-stream"},
	}, {
		Pattern: "POST /api/v1/shares", Role: guard.Read, Serve: served(a.share),
		Doc: page.Doc{Summary: "Makes a link by which everybody who has it sees some entries, and nothing else, until it ends.", Body: NewShare{}, Answer: Share{}},
	}, {
		Pattern: "GET /api/v1/audit", Role: guard.Administer, Serve: served(a.history),
		Doc: page.Doc{Summary: "The audit log, the newest event first.", Answer: trail.Page{}, Query: []page.Parameter{
			{Name: "cursor", Doc: "next of the page before."},
			{Name: "limit", Doc: "Events of a page: 50 without it, 1000 at most.", Example: "50"},
			{Name: "who", Doc: "Only what somebody of this name did."},
			{Name: "action", Doc: "Only this, such as delete or push.", Example: "delete"}}},
	}}
}

// NewShare asks for a share link.
type NewShare struct {
	Entries []string `json:"entries"` // IDs
	Hours   float64  `json:"hours"`   // until it ends: up to 90 days
}

// Share is a share link.
type Share struct {
	Path  string    `json:"path"` // on this server
	Until time.Time `json:"until"`
}

func (a *API) share(w http.ResponseWriter, r *http.Request) error {
	var body NewShare
	if err := page.ReadJSON(r, &body); err != nil {
		return err
	}
	var ids []string
	for _, what := range body.Entries {
		e, err := a.o.Store.Get(r.Context(), what)
		if err != nil {
			return err
		}
		ids = append(ids, e.ID)
	}
	at, until, err := a.o.Guard.Share(ids, time.Duration(body.Hours*float64(time.Hour)))
	if err != nil {
		return page.Bad(err.Error())
	}
	a.audit(r, "share", strings.Join(ids, " "), nil)
	to := "compare?ids=" + url.QueryEscape(strings.Join(ids, ","))
	if len(ids) == 1 {
		to = "run/" + url.PathEscape(ids[0])
	}
	page.WriteJSON(w, http.StatusOK, Share{at + to, until})
	return nil
}

func (a *API) history(w http.ResponseWriter, r *http.Request) error {
	n, err := number(r, "limit", 50, 1, trail.MostEvents)
	if err != nil {
		return err
	}
	v := r.URL.Query()
	match := func(e trail.Event) bool {
		return (v.Get("who") == "" || e.Who == v.Get("who")) && (v.Get("action") == "" || e.Action == v.Get("action"))
	}
	p, err := a.o.Guard.History(v.Get("cursor"), n, match)
	if err != nil {
		return page.Bad(err.Error())
	}
	p.Events = append([]trail.Event{}, p.Events...)
	page.WriteJSON(w, http.StatusOK, p)
	return nil
}
