package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/interop"
	"perflab/internal/redact"
	"perflab/internal/report/audited"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/source"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

type dropView struct {
	Why         string // nothing comes in; "": it does
	Most, Files string
}

func (s *screen) showDrop(w http.ResponseWriter, r *http.Request) error {
	v := dropView{Most: page.Size(mostSent), Files: strconv.Itoa(mostFiles)}
	if err := s.closed(); err != nil {
		v.Why = err.Error()
	}
	return s.Pages.Show(w, r, s.drop, page.View{Title: "Import", Nav: "import", Modules: []string{"intake.js"}, Data: v})
}

// take stages what is sent, and leads to a look at it.
func (s *screen) take(w http.ResponseWriter, r *http.Request) error {
	if err := s.open(); err != nil {
		return err
	}
	s.sweep(time.Now())
	st, err := s.receive(r, guard.From(r.Context()).Name)
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/import/"+st.ID, http.StatusSeeOther)
	return nil
}

// shownFigures are those of the look: all clients define them alike, or say how they do.
var shownFigures = []string{"completed", "request_throughput", "output_throughput", "total_token_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms"}

// lookView is what was read of what somebody sent.
type lookView struct {
	ID, Who string
	At      time.Time
	Bytes   int64
	Files   []lookFile
	Runs    int
	Metrics []string
	Audit   template.HTML // of package doc, which escapes all text
	Roots   []string
	Why     string // nothing can be kept; "": it can
}

// lookFile is one of the files, with what would become of it.
type lookFile struct {
	Name, Dir string // below the root
	Runs      []lookRun
	Faults    []string
	More      int // faults that are not shown
}

type lookRun struct {
	Name, Client, Model, Calls, Verdict string
	Simulated                           bool
	Findings                            int
	Figures                             map[string]float64
}

// mostFaults is how many of a file are shown.
const mostFaults = 20

// read reads a stage: one at a time, for files can be large.
func (s *screen) read(ctx context.Context, st stage) ([]interop.File, []rundir.Import, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	all := source.Uploads(st.uploads())
	for i := range all {
		if f := &all[i]; len(f.Runs) == 0 && len(f.Faults) == 0 {
			*f = source.Faulty(f.Name, "no result was found: no block that a client prints")
		}
	}
	out := filepath.Join(st.Dir, "kept") // nothing is written there: what is kept goes below a root
	if len(all) == 1 {
		out = filepath.Join(out, cmp.Or(interop.Slug(strings.TrimSuffix(all[0].Name, filepath.Ext(all[0].Name))), "file"))
	}
	imports, err := source.Imports(all, out)
	return all, imports, err
}

func (s *screen) showLook(w http.ResponseWriter, r *http.Request) error {
	st, err := s.stageOf(r.PathValue("id"))
	if err != nil {
		return err
	}
	all, imports, err := s.read(r.Context(), st)
	if err != nil {
		return err
	}
	v := lookView{ID: st.ID, Who: st.Who, At: st.At, Bytes: st.Bytes, Metrics: shownFigures, Roots: s.Roots}
	if err := s.closed(); err != nil {
		v.Why = err.Error()
	}
	simulated := false
	for _, m := range imports {
		f := lookFileOf(m)
		f.Dir = filepath.Join("imported", filepath.Base(m.Dir))
		v.Files, v.Runs = append(v.Files, f), v.Runs+len(f.Runs)
		for _, x := range f.Runs {
			simulated = simulated || x.Simulated
		}
	}
	v.Audit = auditOf(all)
	view := page.View{Title: "Import", Nav: "import", Data: v}
	if simulated {
		view.Banner = "SIMULATED: some of these figures are those of a simulator"
	}
	return s.Pages.Show(w, r, s.look, view)
}

// auditOf is what an audit finds, as a part of a page.
func auditOf(all []interop.File) template.HTML {
	a := audited.Audit{Findings: document.Audit(all, audit.Options{})}
	for _, f := range all {
		a.Files = append(a.Files, f.Name)
	}
	return template.HTML(doc.Parts(a.Document()).Body) // doc escapes all text
}

func lookFileOf(m rundir.Import) lookFile {
	f := lookFile{Name: m.File}
	for _, x := range m.Runs {
		calls := "figures only"
		if x.Calls > 0 {
			calls = page.Plural(x.Calls, "call")
		}
		f.Runs = append(f.Runs, lookRun{
			Name: x.Dir, Client: x.Client, Model: x.Model, Calls: calls, Verdict: string(x.Verdict), Simulated: x.Summary.Simulated || x.Header.Simulated,
			Findings: x.Findings, Figures: known(x.Summary),
		})
	}
	for i, fault := range m.Faults {
		if i == mostFaults {
			f.More = len(m.Faults) - i
			break
		}
		text := fault.Text
		if fault.Line > 0 {
			text = fmt.Sprintf("line %d: %s", fault.Line, text)
		}
		f.Faults = append(f.Faults, redact.Shown(text))
	}
	return f
}

// known are the figures that a page may show.
func known(s result.Summary) map[string]float64 {
	out := map[string]float64{}
	for _, name := range shownFigures {
		if v, ok := s.Figures[name]; ok {
			out[name] = v
		}
	}
	return out
}

// keep writes what was read below a root.
func (s *screen) keep(w http.ResponseWriter, r *http.Request) error {
	if err := s.open(); err != nil {
		return err
	}
	st, err := s.stageOf(r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return err
	}
	root, err := s.root(r)
	if err != nil {
		return err
	}
	_, imports, err := s.read(r.Context(), st)
	if err != nil {
		return err
	}
	dirs, err := s.write(root, imports, st.Bytes)
	e := trail.Event{Action: "import", Object: strings.Join(st.Names, ", "), Detail: map[string]string{"into": strings.Join(dirs, ", ")}}
	if err != nil {
		e.Outcome, e.Reason = trail.Failed, err.Error()
	}
	if err := errors.Join(err, s.audited(r.Context(), e)); err != nil {
		return err
	}
	_ = os.RemoveAll(st.Dir) // else the sweep does
	to := s.pageOf(r.Context(), dirs[0])
	if len(dirs) > 1 {
		to = "/runs?q=kind%3Dimport"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// write writes imports below a root, each under a name that nothing has yet.
func (s *screen) write(root string, imports []rundir.Import, bytes int64) (dirs []string, err error) {
	for i := range imports {
		if len(imports[i].Runs) > 0 {
			imports[i].Dir = free(filepath.Join(root, "imported", filepath.Base(imports[i].Dir)), dirs)
			dirs = append(dirs, imports[i].Dir)
		}
	}
	if len(dirs) == 0 {
		return nil, &page.Problem{Status: http.StatusConflict, Text: "no run was read: there is nothing to keep"}
	}
	release, err := s.Disk.Reserve(root, bytes)
	if err != nil {
		return nil, &page.Problem{Status: http.StatusInsufficientStorage, Text: err.Error()}
	}
	defer release()
	return dirs, rundir.WriteImports(imports)
}

// free is a directory's name, or with a number behind it, that nothing has.
func free(dir string, taken []string) string {
	name := dir
	for n := 2; ; n++ {
		_, err := os.Lstat(name)
		if err != nil && !slices.Contains(taken, name) {
			return name
		}
		name = fmt.Sprintf("%s-%d", dir, n)
	}
}

// discard removes what was sent.
func (s *screen) discard(w http.ResponseWriter, r *http.Request) error {
	if err := s.open(); err != nil {
		return err
	}
	st, err := s.stageOf(r.PathValue("id"))
	if err != nil {
		return err
	}
	err = os.RemoveAll(st.Dir)
	e := trail.Event{Action: "discard import", Object: strings.Join(st.Names, ", ")}
	if err != nil {
		e.Outcome, e.Reason = trail.Failed, err.Error()
	}
	if err := errors.Join(err, s.audited(r.Context(), e)); err != nil {
		return err
	}
	http.Redirect(w, r, "/import", http.StatusSeeOther)
	return nil
}
