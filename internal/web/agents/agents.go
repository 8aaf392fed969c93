// Package agents is the screen Fleet: the machines that send loads together, what each has and does, and
// how a machine joins or is removed.
//
//	s := agents.New(agents.Options{Pages: pages, Fleet: watch, Audit: guard.Audit})
//	routes := s.Routes()
//
// Invariants: the fleet is asked once a second for all who look at it, and not at all while nobody does;
// a join command is shown once, to who administers, and stands in no address, log or audit text. What an
// agent says of itself is text of somebody else: it is cut to a length, and written as text.
//
// Deliberately absent: how a fleet works, which is package fleet.
package agents

import (
	"context"
	"embed"
	"net/http"

	"perflab/internal/fleet"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

//go:embed *.html
var files embed.FS

// Options are what the screen needs.
type Options struct {
	Pages    *page.Pages
	Fleet    *fleet.Watch // nil: the server has none
	Audit    func(context.Context, trail.Event) error
	ReadOnly bool // nobody is invited or removed
}

// Screen is the screen.
type Screen struct {
	Options
	watcher watcher

	list, invited, removing, none *page.Template
}

// New makes the screen.
func New(o Options) *Screen {
	return &Screen{
		Options: o,
		watcher: watcher{fleet: o.Fleet},
		list:    o.Pages.Template(files, "fleet.html"), invited: o.Pages.Template(files, "invited.html"),
		removing: o.Pages.Template(files, "remove.html"), none: o.Pages.Template(files, "none.html"),
	}
}

// Routes are the addresses of the screen.
func (s *Screen) Routes() []page.Route {
	return []page.Route{
		{Pattern: "GET /fleet", Role: guard.Read, Serve: s.show},
		{Pattern: "GET /fleet/events", Role: guard.Read, Stream: true, Serve: s.events},
		{Pattern: "POST /fleet/invite", Role: guard.Administer, Serve: s.invite},
		{Pattern: "GET /fleet/remove/{id}", Role: guard.Administer, Serve: s.confirm},
		{Pattern: "POST /fleet/remove/{id}", Role: guard.Administer, Serve: s.remove},
		{
			Pattern: "GET /api/v1/fleet", Role: guard.Read, Serve: s.standing,
			Doc: page.Doc{Summary: "The machines of the fleet: agents that are there with what they have and do, members that are not, loads as they go, and what the idle ones can send together.", Answer: fleet.Standing{}, Errors: noFleet},
		},
		{
			Pattern: "POST /api/v1/fleet/invitations", Role: guard.Administer, Serve: s.newInvitation,
			Doc: page.Doc{Summary: "Makes the command by which one machine joins the fleet, once. It is told here and nowhere else.", Body: fleet.NewInvitation{}, Answer: fleet.Invitation{}, Errors: noFleet},
		},
		{
			Pattern: "DELETE /api/v1/fleet/agents/{id}", Role: guard.Administer, Serve: s.removeAgent,
			Doc: page.Doc{Summary: "Takes the membership of an agent back, and cuts its connection. It can join again by another invitation.", Answer: Removed{}, Errors: map[int]string{http.StatusNotFound: "There is no such member, or the server has no fleet."}},
		},
	}
}

// noFleet describes an error of the API.
var noFleet = map[int]string{http.StatusNotFound: "The server has no fleet."}

// title is that of the pages.
const title = "Fleet"

func (s *Screen) show(w http.ResponseWriter, r *http.Request) error {
	if s.Fleet == nil {
		return s.Pages.Show(w, r, s.none, page.View{Title: title, Nav: "fleet"})
	}
	now := s.watcher.look(r.Context())
	v := struct {
		*view
		Shape string
		May   bool   // invite and remove
		Host  string // by which this server was reached; "": as one of this machine alone
		Lasts []lasts
	}{now.view, now.shape, s.may(r), reached(r), lasting}
	return s.Pages.Show(w, r, s.list, page.View{Title: title, Nav: "fleet", Data: v})
}

// may says whether who asks invites and removes.
func (s *Screen) may(r *http.Request) bool {
	return !s.ReadOnly && guard.From(r.Context()).May(guard.Administer)
}

// events tells a page what changes: figures as they go, and that it is to be drawn anew.
func (s *Screen) events(w http.ResponseWriter, r *http.Request) error {
	if s.Fleet == nil {
		return errNone
	}
	stop := s.watcher.join()
	defer stop()
	stream, err := page.OpenStream(w)
	if err != nil {
		return nil // whoever asked has left
	}
	f := follower{stream: stream, shape: r.URL.Query().Get("at"), cells: map[string]string{}}
	beat := page.Beat()
	defer beat.Stop()
	for {
		now, next := s.watcher.scene()
		if err := f.tell(now); err != nil {
			return nil // the reader left
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-next:
		case <-beat.C:
			if err := stream.Send("alive", "", struct{}{}); err != nil {
				return nil // the reader left
			}
		}
	}
}

// follower is one page that follows the fleet.
type follower struct {
	stream *page.Stream
	shape  string // that the page was drawn of
	cells  map[string]string
}

// tell sends what the page does not have.
func (f *follower) tell(now *scene) error {
	if now == nil {
		return nil // the first look goes on
	}
	changed := map[string]string{}
	for name, text := range now.cells {
		if old, ok := f.cells[name]; !ok || old != text {
			changed[name] = text
		}
	}
	f.cells = now.cells
	if len(changed) > 0 {
		if err := f.stream.Send("set", "", changed); err != nil {
			return err
		}
	}
	if f.shape == now.shape {
		return nil
	}
	f.shape = now.shape
	return f.stream.Send("reload", "", struct{}{})
}
