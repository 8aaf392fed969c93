package scan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"perflab/internal/result"
	"perflab/internal/rundir"
)

// seriesFacts is what of a series' file an index keeps.
type seriesFacts struct {
	Version   string          `json:"version"`
	Kind      string          `json:"kind"`
	Simulated bool            `json:"simulated"`
	Model     string          `json:"model"`
	Targets   []string        `json:"targets"`
	Workload  string          `json:"workload"`
	Started   time.Time       `json:"started"`
	Host      result.Host     `json:"host"`
	Invoked   string          `json:"invoked"`
	SLOs      []result.SLO    `json:"slos"`
	Points    []seriesPoint   `json:"points"`
	Spread    []result.Spread `json:"spread"`
	Max       *struct {
		Load struct {
			Axis  string  `json:"axis"`
			Value float64 `json:"value"`
		} `json:"load"`
		AtLeast bool               `json:"at_least"`
		Figures map[string]float64 `json:"figures"`
	} `json:"max"`
	Stop struct {
		Code string `json:"code"`
		Text string `json:"text"`
	} `json:"stop"`
}

type seriesPoint struct {
	Void    bool `json:"void"`
	Summary struct {
		Duration float64 `json:"duration"`
	} `json:"summary"`
}

// cutOff are the codes of a series that was ended before its plan was done.
var cutOff = map[string]bool{"": true, "interrupted": true, "error": true}

func (t *Tree) readSeries(p Place, f *Facts) error {
	name := sweepFile
	if t.size(p, sweepFile) == 0 {
		name = repeatFile
	}
	b, err := t.file(p, name, f)
	if err != nil {
		return err
	}
	var s seriesFacts
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	// What a series says of itself from its first run on: it has one ID from then to its end.
	f.ID = id("series", s.Kind, stamp(s.Started), s.Invoked, s.Model, s.Targets, s.Host)
	if s.Started.IsZero() { // a version that did not keep it
		f.ID = id("series", b)
	}
	if f.State = Finished; cutOff[s.Stop.Code] {
		if f.State = Stopped; t.held(p.Path, Series) {
			f.State = Running
		}
	}
	f.ofSeries(&s)
	return nil
}

func (f *Facts) ofSeries(s *seriesFacts) {
	f.Title = short(fmt.Sprintf("%s of %s, %s", s.Kind, s.Model, plural(len(s.Points), "run")))
	f.Started, f.Model, f.Workload, f.Load = s.Started, short(s.Model), short(s.Workload), short(s.Workload)
	f.Simulated, f.Invoked, f.Version, f.Host = s.Simulated, command(s.Invoked), short(s.Version), short(hostText(s.Host))
	f.Headline = &Headline{Text: short(s.Stop.Text), Trials: len(s.Points)}
	for _, o := range s.SLOs {
		f.Headline.SLOs = append(f.Headline.SLOs, short(o.String()))
	}
	void := 0
	for _, p := range s.Points {
		f.Duration += p.Summary.Duration
		if p.Void {
			void++
		}
	}
	if len(s.Points) > 0 {
		if f.Verdict = string(result.Sound); void > 0 {
			f.Verdict, f.Reasons = string(result.Noted), []string{plural(void, "run") + " void"}
		}
	}
	if void > 0 && void == len(s.Points) {
		f.Verdict = string(result.Voided)
	}
	f.figure(Points, float64(len(s.Points)))
	for _, x := range s.Spread {
		if isFigure(x.Metric) && len(f.Figures) < mostFigures {
			f.Figures = append(f.Figures, Figure{Metric: x.Metric, Value: x.Mean, Low: x.Low, High: x.High})
		}
	}
	if s.Max != nil {
		metric := result.Search{Axis: s.Max.Load.Axis, Sessions: s.Max.Figures != nil}.Figure()
		if isFigure(metric) {
			for _, name := range slices.Sorted(maps.Keys(s.Max.Figures)) {
				if name != metric && isFigure(name) {
					f.figure(name, s.Max.Figures[name])
				}
			}
			f.figure(metric, s.Max.Load.Value)
			f.Headline.Metric, f.Headline.Higher, f.Headline.Value = metric, true, new(s.Max.Load.Value)
		}
	}
}

func (t *Tree) readImport(p Place, f *Facts) error {
	b, err := t.file(p, importFile, f)
	if err != nil {
		return err
	}
	var m rundir.Import
	f.ID = id("import", b)
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("read %s: %w", importFile, err)
	}
	f.State, f.Title = Finished, short(m.File)
	findings, worst := 0, result.Status("")
	for i, r := range m.Runs {
		findings += max(0, r.Findings)
		if i == 0 || r.Verdict.WorseThan(worst) {
			worst = r.Verdict
		}
		if f.Imported == "" {
			f.Imported = short(r.Client)
		}
		switch {
		case i == 0:
			f.Model = short(r.Model)
		case f.Model != short(r.Model):
			f.Model = ""
		}
	}
	f.Verdict = short(string(worst))
	f.figure(Points, float64(len(m.Runs)))
	f.figure(Findings, float64(findings))
	for _, x := range m.Faults[:min(len(m.Faults), mostReasons)] {
		f.Reasons = append(f.Reasons, short(x.Text))
	}
	return nil
}

func (t *Tree) readSite(p Place, f *Facts) error {
	b, err := t.file(p, siteFile, f)
	if err != nil {
		return err
	}
	var m struct {
		Schema string   `json:"schema"`
		Files  []string `json:"files"`
	}
	f.ID = id("site", b)
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("read %s: %w", siteFile, err)
	}
	f.State, f.Title = Finished, plural(len(m.Files), "page")
	f.figure(Points, float64(len(m.Files)))
	return nil
}
