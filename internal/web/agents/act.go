package agents

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/fleet"
	"perflab/internal/fleet/order"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

// lasts is a time for which an invitation can last.
type lasts struct {
	Value, Text string
	Usual       bool
}

var lasting = []lasts{{"15m", "15 minutes", false}, {"1h", "1 hour", true}, {"8h", "8 hours", false}, {"24h", "1 day", false}, {"168h", "7 days", false}}

// reached is the host by which this server was asked, where other machines may know it by that too.
func reached(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return ""
	}
	return host
}

// What cannot be done here.
var (
	errNone     = &page.Problem{Status: http.StatusNotFound, Text: "this server has no fleet", Hint: "Start it with --fleet ADDRESS, such as --fleet :7422."}
	errReadOnly = &page.Problem{Status: http.StatusForbidden, Text: "this server only shows what there is, and changes nothing", Hint: "Start it without --read-only."}
)

// able says why nobody can be invited or removed; nil: they can.
func (s *Screen) able() error {
	switch {
	case s.Fleet == nil:
		return errNone
	case s.ReadOnly:
		return errReadOnly
	}
	return nil
}

// told is an error of the fleet as whoever asks is told.
func told(err error) error {
	switch {
	case errors.Is(err, fleet.ErrStranger):
		return page.NotFound(err.Error())
	case errors.Is(err, fleet.ErrOutside):
		return &page.Problem{Status: http.StatusConflict, Text: err.Error()}
	}
	if refused, ok := errors.AsType[*order.RefusedError](err); ok {
		return &page.Problem{Status: http.StatusConflict, Text: refused.Error()}
	}
	return err
}

// inviting makes an invitation, and writes down who did. Of the invitation the log has nothing.
func (s *Screen) inviting(r *http.Request, n fleet.NewInvitation) (fleet.Invitation, error) {
	if err := s.able(); err != nil {
		return fleet.Invitation{}, err
	}
	i, err := s.Fleet.Invite(r.Context(), n)
	if _, wrong := errors.AsType[*field.Error](err); wrong {
		return i, err // the log has no text that somebody pasted into the wrong place
	}
	s.audit(r.Context(), "invite to the fleet", n.Host, err)
	return i, told(err)
}

// invite shows a join command, this once.
func (s *Screen) invite(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if err := s.able(); err != nil {
		return err
	}
	d, err := time.ParseDuration(r.PostFormValue("lasts"))
	if err != nil {
		return page.Bad("lasts is a time like 1h, and not " + clip(r.PostFormValue("lasts")))
	}
	i, err := s.inviting(r, fleet.NewInvitation{Host: strings.TrimSpace(r.PostFormValue("host")), Lasts: d.Seconds()})
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return s.Pages.Show(w, r, s.invited, page.View{Title: "Invitation to the fleet", Nav: "fleet", Data: i})
}

// confirm asks whether an agent is to be removed.
func (s *Screen) confirm(w http.ResponseWriter, r *http.Request) error {
	if err := s.able(); err != nil {
		return err
	}
	m, err := s.Fleet.Member(r.Context(), r.PathValue("id"))
	if err != nil {
		return told(err)
	}
	v := struct{ ID, Name, Work string }{m.ID, clip(m.Name), ""}
	for _, x := range s.watcher.look(r.Context()).view.Rows {
		if x.ID == m.ID {
			v.Name, v.Work = x.Name, x.Work
		}
	}
	return s.Pages.Show(w, r, s.removing, page.View{Title: "Remove " + v.Name, Nav: "fleet", Data: v})
}

// removed takes a membership back, and writes down who did.
func (s *Screen) removed(r *http.Request) error {
	if err := s.able(); err != nil {
		return err
	}
	err := s.Fleet.Remove(r.Context(), r.PathValue("id"))
	if !errors.Is(err, fleet.ErrStranger) {
		s.audit(r.Context(), "remove from the fleet", r.PathValue("id"), err)
	}
	return told(err)
}

func (s *Screen) remove(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil { // it has nothing in it: what is too large is refused
		return err
	}
	if err := s.removed(r); err != nil {
		return err
	}
	http.Redirect(w, r, "/fleet", http.StatusSeeOther)
	return nil
}

// audit writes down an action. What cannot be written is counted by the guard.
func (s *Screen) audit(ctx context.Context, action, object string, err error) {
	e := trail.Event{Action: action, Object: object}
	if err != nil {
		e.Outcome, e.Reason = trail.Failed, err.Error()
	}
	_ = s.Audit(ctx, e)
}

// standing is the fleet for scripts.
func (s *Screen) standing(w http.ResponseWriter, r *http.Request) error {
	if s.Fleet == nil {
		return errNone
	}
	st, err := s.Fleet.Standing(r.Context())
	if err != nil {
		return told(err)
	}
	page.WriteJSON(w, http.StatusOK, st)
	return nil
}

func (s *Screen) newInvitation(w http.ResponseWriter, r *http.Request) error {
	var n fleet.NewInvitation
	if err := page.ReadJSON(r, &n); err != nil {
		return err
	}
	i, err := s.inviting(r, n)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	page.WriteJSON(w, http.StatusOK, i)
	return nil
}

// Removed is an agent that is a member no more.
type Removed struct {
	ID string `json:"id"`
}

func (s *Screen) removeAgent(w http.ResponseWriter, r *http.Request) error {
	if err := s.removed(r); err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, Removed{r.PathValue("id")})
	return nil
}
