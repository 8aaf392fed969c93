package start

import (
	"net/http"

	"perflab/internal/redact"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// benchView is what the page of the form shows.
type benchView struct {
	Why     string // nothing can be launched; "": it can
	Name    string
	Groups  []filledGroup
	Command string
	Rest    []string // what is wrong with no single input
	Checked bool
	Right   bool
}

type filledGroup struct {
	Title  string
	Inputs []filled
}

// filled is an input with what somebody put in.
type filled struct {
	question
	Value, Wrong string
}

// viewOf is the form as it is filled in; checked, with what is wrong.
func (s *screen) viewOf(f form, checked bool) benchView {
	v := benchView{Name: f.Name, Command: f.command(), Checked: checked}
	if err := s.closed(); err != nil {
		v.Why = err.Error()
	}
	var wrong map[string]string
	if checked {
		wrong, v.Rest = s.wrongForm(f)
		v.Right = len(wrong)+len(v.Rest) == 0
	}
	for _, g := range groups() {
		out := filledGroup{Title: g.Title}
		for _, in := range g.Inputs {
			x := filled{question: in, Value: f.Values[in.Name], Wrong: wrong[in.Name]}
			if x.Value == "" {
				x.Value = in.Usual
			}
			out.Inputs = append(out.Inputs, x)
		}
		v.Groups = append(v.Groups, out)
	}
	return v
}

// wrongForm is what is wrong with a form, or not allowed, by its inputs, and what of none.
func (s *screen) wrongForm(f form) (map[string]string, []string) {
	err := f.check()
	_, refused := s.Queue.Check(launch.Request{Bench: f.request()})
	at, rest := wrongAt(err, refused)
	for name, text := range at {
		at[name] = redact.Shown(redact.Text(text))
	}
	for i, text := range rest {
		rest[i] = redact.Shown(redact.Text(text))
	}
	return at, rest
}

func (f form) request() *launch.BenchRequest {
	return &launch.BenchRequest{Name: f.Name, Flags: f.flags()}
}

// showBench shows the form, filled in by what the address has.
func (s *screen) showBench(w http.ResponseWriter, r *http.Request) error {
	return s.showForm(w, r, http.StatusOK, s.viewOf(formOf(r.URL.Query()), false))
}

func (s *screen) showForm(w http.ResponseWriter, r *http.Request, status int, v benchView) error {
	return s.Pages.ShowStatus(w, r, status, s.bench, page.View{Title: "New bench", Nav: "launch", Modules: []string{"launch.js"}, Data: v})
}

// postBench checks the form, or launches it: as the button says.
func (s *screen) postBench(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	f := formOf(r.PostForm)
	v := s.viewOf(f, true)
	switch {
	case !v.Right:
		return s.showForm(w, r, http.StatusUnprocessableEntity, v)
	case r.PostForm.Get("do") != "start":
		return s.showForm(w, r, http.StatusOK, v)
	}
	l, err := s.submit(r.Context(), launch.Request{Bench: f.request()})
	if err != nil {
		return problem(err)
	}
	http.Redirect(w, r, "/launch/"+l.ID, http.StatusSeeOther)
	return nil
}

// checkBench says, while a form is filled in, which command it is and what is wrong with it.
func (s *screen) checkBench(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	f := formOf(r.PostForm)
	at, rest := s.wrongForm(f)
	page.WriteJSON(w, http.StatusOK, struct {
		Command string            `json:"command"`
		Wrong   map[string]string `json:"wrong"` // by inputs
		Rest    []string          `json:"rest,omitempty"`
	}{redact.Shown(redact.Text(f.command())), at, rest})
	return nil
}
