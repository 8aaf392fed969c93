package start

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perflab/examples"
	"perflab/internal/arch"
	"perflab/internal/draft"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/input"
	"perflab/internal/redact"
	"perflab/internal/store/scan"
	"perflab/internal/study"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// problemJSON is one thing that is wrong with a study, as an editor takes it.
type problemJSON struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// wrongWith is what is wrong with a study's text, or not allowed.
func (s *screen) wrongWith(text string) []problemJSON {
	_, err := s.Queue.Study(launch.StudyRequest{Text: text})
	return problemsOf(text, err)
}

func problemsOf(text string, err error) []problemJSON {
	out := []problemJSON{}
	for _, p := range study.Located([]byte(text), err) {
		out = append(out, problemJSON{p.Line, p.Column, redact.Shown(p.Text)})
	}
	return out
}

// studyView is what the page of the editor shows.
type studyView struct {
	Why       string // nothing can be launched; "": it can
	Text      string
	From      string // where the text is from
	Answers   draft.Answers
	SLOs      string
	Wrong     map[string]string // by the name of the question
	Failed    string            // no study can be made of the answers
	Notes     []string          // of the draft
	Problems  []problemJSON
	Checked   bool
	Ranking   *rankingView
	Templates []template
	Choices   choices
	Running   int // launches that run now
}

// template is a study that the project publishes.
type template struct{ Name, About string }

// choices are what the questions can be answered by.
type choices struct {
	Engines, Models, GPUs, Runtimes, Objectives, Workloads []string
}

// show shows the editor.
func (s *screen) show(w http.ResponseWriter, r *http.Request, status int, v studyView) error {
	if err := s.closed(); err != nil {
		v.Why = err.Error()
	}
	v.Templates, v.Choices = templates(), theChoices()
	if s.Queue != nil {
		for _, l := range s.Queue.List() {
			v.Running += count(l.State == launch.Running)
		}
	}
	view := page.View{Title: "New study", Nav: "launch", Modules: []string{"launch.js"}, Data: v}
	if v.Ranking != nil && v.Ranking.Predicted {
		view.Banner = "SIMULATED: the ranking below is predicted by the simulator, and nothing of it was measured"
	}
	return s.Pages.ShowStatus(w, r, status, s.study, view)
}

// theChoices are the same for everybody.
func theChoices() choices {
	var c choices
	for _, e := range engine.All() {
		c.Engines = append(c.Engines, e.Name)
	}
	for _, m := range arch.Models() {
		c.Models = append(c.Models, m.Name)
	}
	for _, a := range arch.Accelerators() {
		c.GPUs = append(c.GPUs, a.Name)
	}
	for _, o := range draft.Objectives() {
		c.Objectives = append(c.Objectives, o.Name)
	}
	for _, l := range draft.Workloads() {
		c.Workloads = append(c.Workloads, l.Name)
	}
	c.Runtimes = draft.Runtimes()
	return c
}

// templates are the published studies.
func templates() []template {
	names, _ := fs.Glob(examples.Studies, "*.yaml") // the pattern is right
	var out []template
	for _, name := range names {
		b, err := examples.Studies.ReadFile(name)
		if err != nil {
			panic(err) // what is inside of a program is there
		}
		out = append(out, template{strings.TrimSuffix(name, ".yaml"), about(string(b))})
	}
	slices.SortStableFunc(out, func(a, b template) int { return count(b.Name == "quickstart") - count(a.Name == "quickstart") })
	return out
}

// about is the first sentence of a study file's head.
func about(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		line, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		line = strings.TrimSpace(line)
		if !comment || line == "" && len(words) > 0 {
			break
		}
		if line != "" && !strings.Contains(line, "$schema=") && !strings.HasPrefix(line, "perflab ") {
			words = append(words, line)
		}
	}
	first, _, _ := strings.Cut(strings.Join(words, " ")+" ", ". ")
	return strings.TrimRight(first, " .:")
}

// showStudy shows the editor: empty, with a template, or with the study of a launch or of a directory.
func (s *screen) showStudy(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := studyView{}
	switch name, from := q.Get("template"), q.Get("from"); {
	case name != "":
		b, err := examples.Studies.ReadFile(name + ".yaml")
		if err != nil {
			return page.NotFound("there is no template " + name)
		}
		v.Text, v.From = string(b), "the template "+name
	case from != "":
		text, what, err := s.copied(r, from)
		if err != nil {
			return err
		}
		v.Text, v.From = text, what
	}
	return s.show(w, r, http.StatusOK, v)
}

// mostStudy is the largest study file that is copied.
const mostStudy = 1 << 20

// copied is the text of the study that a launch or an entry was made by.
func (s *screen) copied(r *http.Request, id string) (text, what string, err error) {
	if s.Queue != nil {
		if l, err := s.Queue.Get(id); err == nil && l.Kind == launch.Study {
			text, err := s.Queue.Text(id)
			return redact.Shown(text), l.Name, err
		}
	}
	e, err := s.Store.Get(r.Context(), id)
	if err != nil {
		return "", "", page.NotFound("there is no study " + id)
	}
	if e.Kind != scan.Study || e.Dir() == "" {
		return "", "", page.NotFound(e.Called() + " has no study file on this machine")
	}
	b, err := input.File(filepath.Join(e.Dir(), "study.yaml"), mostStudy)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", page.NotFound(e.Called() + " was made by a version of perflab that kept no study file")
	}
	return redact.Shown(redact.Text(string(b))), e.Called(), err
}

// postStudy makes a draft, checks the text, or launches it: as the button says.
func (s *screen) postStudy(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	v := studyView{Text: strings.ReplaceAll(r.PostForm.Get("study"), "\r\n", "\n")}
	switch r.PostForm.Get("do") {
	case "draft":
		return s.draft(w, r, v)
	case "start":
		return s.startStudy(w, r, v)
	}
	v.Checked = true
	if v.Problems = s.wrongWith(v.Text); len(v.Problems) == 0 {
		ranking, err := s.rank(r.Context(), v.Text)
		if err != nil {
			return err
		}
		v.Ranking = ranking
	}
	return s.show(w, r, http.StatusOK, v)
}

// draft makes a study of the answers, as perflab init does.
func (s *screen) draft(w http.ResponseWriter, r *http.Request, v studyView) error {
	f := r.PostForm
	a := draft.Answers{
		Engine: f.Get("engine"), Model: strings.TrimSpace(f.Get("model")), GPU: strings.TrimSpace(f.Get("gpu")), Runtime: f.Get("runtime"),
		Objective: strings.TrimSpace(f.Get("objective")), Workload: strings.TrimSpace(f.Get("workload")), Price: strings.TrimSpace(f.Get("price_per_hour")), Name: strings.TrimSpace(f.Get("name")),
	}
	v.SLOs = f.Get("slo")
	for line := range strings.Lines(v.SLOs) {
		if line = strings.TrimSpace(line); line != "" {
			a.SLOs = append(a.SLOs, line)
		}
	}
	var err error
	if text := strings.TrimSpace(f.Get("gpus")); text != "" {
		if a.GPUs, err = strconv.Atoi(text); err != nil || a.GPUs < 1 {
			err = field.Errorf("gpus", "%q is not a number of devices", text)
		}
	}
	var file draft.File
	if v.Answers = a; err == nil {
		err = a.Check()
	}
	if err == nil {
		file, err = draft.Make(a, s.machine.seen(r.Context()))
	}
	if err != nil {
		v.Wrong = map[string]string{}
		for _, e := range field.All(err) {
			if e.Path == "" {
				v.Failed = redact.Shown(e.Reason)
			} else {
				v.Wrong[e.Path] = redact.Shown(e.Reason)
			}
		}
		return s.show(w, r, http.StatusUnprocessableEntity, v)
	}
	v.Text, v.From, v.Notes = string(file.Text), "your answers", file.Notes
	v.Problems = s.wrongWith(v.Text)
	return s.show(w, r, http.StatusOK, v)
}

// startStudy launches the text.
func (s *screen) startStudy(w http.ResponseWriter, r *http.Request, v studyView) error {
	if v.Problems = s.wrongWith(v.Text); len(v.Problems) > 0 {
		v.Checked = true
		return s.show(w, r, http.StatusUnprocessableEntity, v)
	}
	l, err := s.submit(r.Context(), launch.Request{Study: &launch.StudyRequest{Text: v.Text}})
	if err != nil {
		return problem(err)
	}
	http.Redirect(w, r, "/launch/"+l.ID, http.StatusSeeOther)
	return nil
}

// quickstart launches the study to begin with.
func (s *screen) quickstart(w http.ResponseWriter, r *http.Request) error {
	if err := s.open(); err != nil {
		return err
	}
	l, err := s.submit(r.Context(), launch.Request{Study: &launch.StudyRequest{Text: examples.Quickstart}})
	if err != nil {
		return problem(err)
	}
	http.Redirect(w, r, "/launch/"+l.ID, http.StatusSeeOther)
	return nil
}

// checkRoute is what an editor asks as one types.
func (s *screen) checkRoute() page.Route {
	return page.Route{
		Pattern: "POST /api/v1/studies/check", Role: roleOfChecks, Limit: mostBody,
		Doc: page.Doc{Summary: "Say what is wrong with a study file, or not allowed to be launched, at its line and column.", Media: "application/yaml", Answer: []problemJSON{}},
		Serve: func(w http.ResponseWriter, r *http.Request) error {
			text, err := s.bodyOf(r)
			if err != nil {
				return err
			}
			page.WriteJSON(w, http.StatusOK, s.wrongWith(text))
			return nil
		},
	}
}

// completeRoute is what an editor asks for what may stand at the cursor.
func (s *screen) completeRoute() page.Route {
	return page.Route{
		Pattern: "POST /api/v1/studies/complete", Role: roleOfChecks, Limit: mostBody,
		Doc: page.Doc{
			Summary: "Say which keys or values may stand at a place of a study file.", Media: "application/yaml", Answer: []choice{},
			Query: []page.Parameter{{Name: "line", Doc: "Line of the cursor, from 1.", Example: "3"}, {Name: "column", Doc: "Column of the cursor in code points, from 1.", Example: "5"}},
		},
		Serve: func(w http.ResponseWriter, r *http.Request) error {
			line, err1 := strconv.Atoi(r.URL.Query().Get("line"))
			column, err2 := strconv.Atoi(r.URL.Query().Get("column"))
			if err1 != nil || err2 != nil || line < 1 || column < 1 {
				return page.Bad("say where the cursor is: line and column, from 1")
			}
			text, err := s.bodyOf(r)
			if err != nil {
				return err
			}
			page.WriteJSON(w, http.StatusOK, complete(text, line, column))
			return nil
		},
	}
}

// bodyOf is the text that was sent.
func (s *screen) bodyOf(r *http.Request) (string, error) {
	if err := s.open(); err != nil {
		return "", err
	}
	b, err := io.ReadAll(r.Body)
	return strings.ReplaceAll(string(b), "\r\n", "\n"), err
}

// Value is an answer, or what is usual.
func (v studyView) Value(answer, usual string) string { return cmp.Or(answer, usual) }
