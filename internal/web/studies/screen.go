// Package studies is the screens of studies: the list of them, one as it runs and after its end,
// and one of its trials.
//
//	routes := studies.Routes(studies.Options{Pages: pages, Store: store, Queue: queue, Guard: guard})
//
// Invariants: everything comes from the directory of a study, so that one that nobody launched from
// a browser is shown as any other; however many look at it, its files are read once a second by one
// watcher, which goes with the last of them, and read on from where they were read to. What leads a
// study that goes on is never called its winner. Of a log only its end is read, without secrets.
//
// Deliberately absent: figures and judgements, which are made by tune and told by report.
package studies

import (
	"embed"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
)

//go:embed *.html
var files embed.FS

// Options are what the screens work with.
type Options struct {
	Pages *page.Pages
	Store *recall.Index
	Queue *launch.Queue // nil: nothing is launched here
	Guard *guard.Guard
}

// screen is the screens of one server.
type screen struct {
	Options
	watchers  watchers
	documents documents

	list, study, trial, shared *page.Template
}

// Routes are the addresses of the screens.
func Routes(o Options) []page.Route {
	s := &screen{
		Options:   o,
		watchers:  watchers{by: map[string]*watcher{}},
		documents: documents{by: map[string]document{}},
		list:      o.Pages.Template(files, "list.html"),
		study:     o.Pages.Template(files, "study.html", "now.html", "race.html"),
		trial:     o.Pages.Template(files, "trial.html"),
		shared:    o.Pages.Template(files, "share.html"),
	}
	return []page.Route{
		{Pattern: "GET /studies", Role: guard.Read, Serve: s.showList},
		{Pattern: "GET /studies/events", Role: guard.Read, Stream: true, Serve: s.streamList},
		{Pattern: "GET /study/{id}", Role: guard.Read, Shared: true, Serve: s.showStudy},
		{Pattern: "GET /study/{id}/events", Role: guard.Read, Shared: true, Stream: true, Serve: s.streamStudy},
		{Pattern: "GET /study/{id}/chart/{name}", Role: guard.Read, Shared: true, Serve: s.showChart},
		{Pattern: "GET /study/{id}/study.yaml", Role: guard.Read, Shared: true, Serve: s.sendFile},
		{Pattern: "GET /study/{id}/trial/{n}", Role: guard.Read, Shared: true, Serve: s.showTrial},
		{Pattern: "GET /study/{id}/trial/{n}/log/{name}", Role: guard.Read, Shared: true, Serve: s.sendLog},
		{Pattern: "POST /study/{id}/stop", Role: guard.Launch, Serve: s.stop},
		{Pattern: "POST /study/{id}/resume", Role: guard.Launch, Serve: s.resume},
		{Pattern: "POST /study/{id}/share", Role: guard.Read, Serve: s.share},
	}
}

// subject is the study that an address names.
type subject struct {
	Key    string         // in addresses
	Entry  *store.Entry   // nil: the index does not have it yet
	Launch *launch.Launch // nil: nobody launched it here
	Dir    string         // "": it lies on another machine
}

// launchID is what the ID of a launch looks like; none of an entry does.
var launchID = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{8}$`)

// subject finds a study by the ID of its entry, or of the launch that it is of: the second is known
// before anything is measured, and stays.
func (s *screen) subject(r *http.Request) (subject, error) {
	id := r.PathValue("id")
	if launchID.MatchString(id) && s.Queue != nil {
		return s.launched(r, id)
	}
	e, err := s.Store.Get(r.Context(), id)
	if missing, ok := errors.AsType[*store.NotFoundError](err); ok {
		return subject{}, page.NotFound(missing.Error())
	}
	switch {
	case err != nil:
		return subject{}, err
	case e.Kind != scan.Study:
		return subject{}, page.NotFound(e.Called() + " is no study, but a " + string(e.Kind) + ": the list of runs has it")
	case !sees(r, e):
		return subject{}, page.NotFound("this link does not show that study")
	}
	out := subject{Key: e.ID, Entry: &e, Dir: e.Dir()}
	out.Launch = s.launches()[out.Dir]
	return out, nil
}

// sees says whether whoever asks may see an entry: a share link may name the ID that it had while
// it was under way.
func sees(r *http.Request, e store.Entry) bool {
	who := guard.From(r.Context())
	return who.Sees(e.ID) || e.Early != "" && who.Sees(e.Early)
}

// launched is the study of a launch.
func (s *screen) launched(r *http.Request, id string) (subject, error) {
	l, err := s.Queue.Get(id)
	missing, ok := errors.AsType[*launch.NotFoundError](err)
	switch {
	case ok:
		return subject{}, page.NotFound(missing.Error())
	case err != nil:
		return subject{}, err
	case l.Kind != launch.Study:
		return subject{}, page.NotFound(l.Name + " is no study, but a bench: see Launch")
	case !guard.From(r.Context()).Sees(id):
		return subject{}, page.NotFound("this link does not show that study")
	}
	out := subject{Key: id, Launch: &l, Dir: l.Dir}
	if e, err := s.Store.Get(r.Context(), l.Dir); err == nil {
		out.Entry = &e
	}
	return out, nil
}

// launches are the newest launches of studies by their directories.
func (s *screen) launches() map[string]*launch.Launch {
	out := map[string]*launch.Launch{}
	if s.Queue == nil {
		return out
	}
	for _, l := range slices.Backward(s.Queue.List()) { // the running and the newest last: they stay
		if l.Kind == launch.Study {
			out[filepath.Clean(l.Dir)] = &l
		}
	}
	return out
}

// watchers are the watchers of directories that somebody looks at.
type watchers struct {
	mu sync.Mutex
	by map[string]*watcher
}
