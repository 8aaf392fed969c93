package source

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// Imports turns files into what is to be written below a directory (of one file:
// into it; "": the usual ones), and refuses directories that exist before
// anything is.
func Imports(files []interop.File, out string) ([]rundir.Import, error) {
	findings := audit.ByRun(document.Audit(files, audit.Options{}))
	names := uniqueNames{}
	var all []rundir.Import
	for i := range files {
		f := &files[i]
		base := filepath.Base(f.Name)
		slug := names.name(cmp.Or(interop.Slug(strings.TrimSuffix(base, filepath.Ext(base))), "file"))
		m := rundir.Import{File: f.Name, Dir: filepath.Join("perflab-out", "imported", slug)}
		switch {
		case out != "" && len(files) == 1:
			m.Dir = out
		case out != "":
			m.Dir = filepath.Join(out, slug)
		}
		for _, fault := range f.Faults {
			m.Faults = append(m.Faults, rundir.ImportFault{File: fault.File, Line: fault.Line, Text: fault.Text})
		}
		dirs := uniqueNames{}
		for j := range f.Runs {
			r, err := importedRun(&f.Runs[j], findings[&f.Runs[j]])
			if err != nil {
				m.Faults = append(m.Faults, rundir.ImportFault{File: f.Name, Line: f.Runs[j].Place.Line, Text: err.Error()})
				continue
			}
			r.Dir = dirs.name(runName(j+1, &f.Runs[j]))
			m.Runs = append(m.Runs, r)
		}
		if err := m.CheckFree(); err != nil && len(m.Runs) > 0 {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// uniqueNames gives every name once.
type uniqueNames map[string]bool

func (u uniqueNames) name(want string) string {
	name := want
	for n := 2; u[name]; n++ {
		name = fmt.Sprintf("%s-%d", want, n)
	}
	u[name] = true
	return name
}

// runName names the directory of a run by its number in the file and what it
// is: the innermost heading and the case, else the model. Of what is long the
// end stays, where headings that are alike differ.
func runName(n int, r *interop.Run) string {
	const longest = 72
	words := []string{r.Header.Label(result.LabelCase), r.Header.Label(result.LabelRole)}
	if s := r.Header.Imported.Section; len(s) > 0 {
		words = append([]string{withoutNumber(s[len(s)-1])}, words...)
	}
	slug := cmp.Or(interop.Slug(words...), interop.Slug(r.Header.Model), "run")
	if len(slug) > longest {
		begin, end := slug[:longest/2], slug[len(slug)-longest/2:]
		if i := strings.LastIndexByte(begin, '-'); i > 0 {
			begin = begin[:i]
		}
		_, last, _ := strings.Cut(end, "-")
		slug = begin + "-" + cmp.Or(last, end)
	}
	return fmt.Sprintf("%03d-%s", n, slug)
}

// withoutNumber removes the number of a heading, as of "2. Quantization" and
// "3.1 Size 256", and no figure, as of "4 nodes".
func withoutNumber(title string) string {
	number, rest, ok := strings.Cut(title, " ")
	if ok && strings.Contains(number, ".") && strings.Trim(number, "0123456789.") == "" {
		return rest
	}
	return title
}

// importedRun is a run with its figures and the verdict on them.
func importedRun(r *interop.Run, findings []audit.Finding) (rundir.ImportedRun, error) {
	s, err := r.Summary()
	if err != nil {
		return rundir.ImportedRun{}, err
	}
	h := r.Header
	origin := *h.Imported
	origin.Rounding, origin.Lacks = r.Rounding(), r.Lacks
	for _, o := range r.Other {
		if origin.Other == nil {
			origin.Other = map[string]string{}
		}
		origin.Other[o.Label] = o.Text
	}
	h.Imported, h.Simulated = &origin, h.Simulated || r.Sim
	s.Verdict = importedVerdict(r, findings)
	return rundir.ImportedRun{
		Line: origin.Line, Client: strings.TrimSpace(origin.Client + " " + origin.Version), Model: h.Model, Case: h.Label(result.LabelCase),
		Calls: len(r.Calls), Verdict: s.Verdict.Status, Findings: len(findings), Header: h, Summary: s, Stored: r.Calls,
	}, nil
}

// importedVerdict says what is known of figures that perflab did not measure:
// that it did not, and what audit finds in them.
func importedVerdict(r *interop.Run, findings []audit.Finding) result.Verdict {
	var v result.Verdict
	if r.Sim || r.Header.Simulated {
		v.Add(result.Check{Name: "simulated", Status: result.Sound, Text: "SIMULATED: the file says that no hardware was measured"})
	}
	origin := r.Header.Imported
	text := fmt.Sprintf("figures of %s by %s", interop.Place{File: origin.File, Line: origin.Line}, cmp.Or(origin.Client, "an unknown client"))
	if !strings.HasPrefix(origin.Client, "perflab") { // else an export of ours that came back
		text += "; perflab did not measure them"
	}
	v.Add(result.Check{Name: "imported", Status: result.Sound, Text: text})
	for _, c := range r.Verdict.Checks {
		if c.Status != result.Sound {
			v.Add(c)
		}
	}
	statuses := map[audit.Severity]result.Status{audit.Error: result.Voided, audit.Warning: result.Noted, audit.Note: result.Remark}
	for _, f := range findings {
		v.Add(result.Check{Name: f.Type, Status: statuses[f.Severity], Text: f.Text})
	}
	return v
}
