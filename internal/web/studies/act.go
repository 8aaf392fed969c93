package studies

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// actions are what may be done with a study by whoever looks at it.
type actions struct {
	Stop      bool   // by a button
	AtOnce    bool   // it is stopping: the button ends it at once
	Resume    bool   // by a button
	StopHow   string // why there is no button, and what to do
	StopRun   string // a command to copy
	ResumeHow string
	ResumeRun string
	Copy      string // address of the form that a new study begins with this one's text
	More      bool   // it may be extended: by a new study that learns from this one
	File      string // address of its study.yaml
	Publish   string // address
	Share     bool
	Launches  string // address of its launch
}

// actionsOf are the actions that make sense in a state.
func actionsOf(who guard.Who, s *screen, sub subject, state string, now *scene) actions {
	a := actions{}
	address := who.Base + "/study/" + sub.Key
	if sub.Dir != "" && !now.missing {
		a.File = address + "/study.yaml"
	}
	if who.Base != "" { // a share link changes nothing
		return a
	}
	if l := sub.Launch; l != nil {
		a.Launches = "/launch/" + l.ID
		a.Copy = "/launch/study?copy=" + l.ID
	}
	if sub.Entry != nil {
		a.Share = true
		a.Copy = "/launch/study?copy=" + url.QueryEscape(sub.Entry.ID)
		if state == string(outcome.Finished) {
			a.Publish = "/sites?ids=" + url.QueryEscape(sub.Entry.ID)
		}
	}
	if !who.May(guard.Launch) || s.readOnly() != nil {
		a.Copy = ""
	}
	a.More = state == string(outcome.Finished) || state == string(outcome.Stopped)
	switch state {
	case string(outcome.Running), "starting":
		a.stopping(who, s, sub)
	case string(outcome.Stopped):
		a.resuming(who, s, sub, now)
	}
	return a
}

// stopping says how a study that runs is stopped.
func (a *actions) stopping(who guard.Who, s *screen, sub subject) {
	l := sub.Launch
	switch why := s.readOnly(); {
	case l == nil || l.State != launch.Running:
		a.StopHow = "This study was not launched here, so this server does not stop it: press Ctrl-C in its terminal, once. It finishes nothing more and keeps what was measured."
	case why != nil:
		a.StopHow = page.Capital(why.Error()) + "."
	case !who.May(guard.Launch):
		a.StopHow = "To stop it you need the role launch."
	default:
		a.Stop, a.AtOnce = true, l.Stopping()
	}
}

// resuming says how a study goes on that was stopped.
func (a *actions) resuming(who guard.Who, s *screen, sub subject, now *scene) {
	l := sub.Launch
	command := now.standing.Next
	switch why := s.readOnly(); {
	case l == nil:
		a.ResumeHow, a.ResumeRun = "This study was not launched here, so its study file and its machines may be known only where it was begun. To go on with it, keeping what was measured:", command
	case why != nil:
		a.ResumeHow, a.ResumeRun = page.Capital(why.Error())+". To go on with the study by hand:", command
	case !who.May(guard.Launch):
		a.ResumeHow = "To let it go on you need the role launch."
	default:
		a.Resume = true
	}
}

// readOnly is why nothing can be stopped or resumed here; nil where it can.
func (s *screen) readOnly() error {
	if s.Queue == nil {
		return errors.New("this server only reads: nothing is launched or stopped here")
	}
	return s.Queue.ReadOnly()
}

// stop asks a study to end.
func (s *screen) stop(w http.ResponseWriter, r *http.Request) error {
	return s.act(w, r, "stop a study", "this study was not launched here: press Ctrl-C in its terminal", func(id, who string) (launch.Launch, error) {
		return s.Queue.Stop(id, who)
	})
}

// resume lets a study go on.
func (s *screen) resume(w http.ResponseWriter, r *http.Request) error {
	return s.act(w, r, "resume a study", "this study was not launched here: go on with it by the command on its page", func(id, who string) (launch.Launch, error) {
		s.settle(r.Context(), id)
		return s.Queue.Resume(id, who)
	})
}

// settling is how long a study that has said that it is stopped may take to end as a process.
const settling = 5 * time.Second

// settle waits until the process of a launch has ended: a study is stopped a moment before.
func (s *screen) settle(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for {
		version := s.Queue.Version()
		if l, err := s.Queue.Get(id); err != nil || l.State != launch.Running {
			return
		}
		if _, err := s.Queue.Wait(ctx, version); err != nil {
			return // it says itself that it runs
		}
	}
}

// act does something with the launch of a study, and writes down who did.
func (s *screen) act(w http.ResponseWriter, r *http.Request, action, notHere string, do func(id, who string) (launch.Launch, error)) error {
	sub, err := s.subject(r)
	if err != nil {
		return err
	}
	if err := s.readOnly(); err != nil {
		return &page.Problem{Status: http.StatusConflict, Text: err.Error()}
	}
	if sub.Launch == nil {
		return &page.Problem{Status: http.StatusConflict, Text: notHere}
	}
	_, err = do(sub.Launch.ID, guard.From(r.Context()).Name)
	s.audit(r.Context(), action, sub.Launch.ID, err)
	if wrong, ok := errors.AsType[*launch.StateError](err); ok {
		return &page.Problem{Status: http.StatusConflict, Text: wrong.Error()}
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/study/"+sub.Key, http.StatusSeeOther)
	return nil
}

// audit writes down an action, and how it went. What cannot be written is counted by the guard.
func (s *screen) audit(ctx context.Context, action, object string, err error) {
	e := trail.Event{Action: action, Object: object}
	if err != nil {
		e.Outcome, e.Reason = trail.Failed, err.Error()
	}
	_ = s.Guard.Audit(ctx, e)
}

// lives are how many days a share link may live.
var lives = []int{1, 7, 30, 90}

// shareView is a link that was made.
type shareView struct {
	Study, Key, Link string
	Until            time.Time
}

// share makes a link by which everybody who has it sees the study, and nothing else.
func (s *screen) share(w http.ResponseWriter, r *http.Request) error {
	sub, err := s.subject(r)
	if err != nil {
		return err
	}
	if sub.Entry == nil {
		return &page.Problem{Status: http.StatusConflict, Text: "the study is not in the index yet: share it once its first launch has begun"}
	}
	days := 7
	if text := r.FormValue("days"); text != "" {
		if i := slices.IndexFunc(lives, func(n int) bool { return fmt.Sprint(n) == text }); i >= 0 {
			days = lives[i]
		} else {
			return page.Bad("a link lives 1, 7, 30 or 90 days")
		}
	}
	ids := []string{sub.Entry.ID}
	if early := sub.Entry.Early; early != "" && early != ids[0] {
		ids = append(ids, early)
	}
	path, until, err := s.Guard.Share(ids, time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}
	s.audit(r.Context(), "share a study", sub.Entry.ID, nil)
	v := shareView{Study: sub.Entry.Called(), Key: sub.Key, Link: origin(r) + path + "study/" + ids[0], Until: until}
	return s.Pages.Show(w, r, s.shared, page.View{Title: "Share " + v.Study, Nav: "studies", Data: v})
}

// origin is the beginning of the address by which this server was asked.
func origin(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host
}
