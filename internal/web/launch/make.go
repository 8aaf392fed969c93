package launch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/redact"
	"perflab/internal/study"
	"perflab/internal/web/allow"
)

// mostText is the largest study file.
const mostText = 1 << 20

// maker says what a request makes.
type maker struct {
	dir  folder
	work string // directory that launches run in
	o    Options
}

// describe checks a request and says what it makes.
func (m maker) describe(l *Launch, r Request) error {
	switch {
	case (r.Study == nil) == (r.Bench == nil):
		return errors.New("a launch is of a study or of a bench: ask for one of them")
	case r.Study != nil:
		return m.describeStudy(l, r.Study)
	}
	return m.describeBench(l, r.Bench)
}

func (m maker) checker() allow.Checker {
	return allow.Checker{List: m.o.Allow, Dir: m.work, Roots: m.o.Roots}
}

// parse reads a study as a launch would, of which nothing is opened before it is allowed.
func (m maker) parse(r StudyRequest) (*study.Study, error) {
	if len(r.Text) > mostText {
		return nil, fmt.Errorf("the study's text has %d bytes: a launched one has %d at most", len(r.Text), mostText)
	}
	if r.Strategy != "" && !slices.Contains(study.Strategies(), r.Strategy) {
		return nil, field.Errorf("strategy", "%q is not known: use %s", r.Strategy, strings.Join(study.Strategies(), ", "))
	}
	s, err := study.ParseAllowed(studyFile, []byte(r.Text), r.Strategy, m.checker().Study)
	if err != nil {
		return nil, err
	}
	if s.Secrets().Text(r.Text) != r.Text {
		return nil, errors.New("the study holds a secret: leave it out, and let the administrator put it into the environment of perflab serve, which engines inherit")
	}
	return s, nil
}

// describeStudy says what a study makes.
func (m maker) describeStudy(l *Launch, r *StudyRequest) error {
	s, err := m.parse(*r)
	if err != nil {
		return err
	}
	l.Kind, l.Name, l.Strategy = Study, s.Name, r.Strategy
	l.Place, l.Simulated = placeOfStudy(s, m.lookup), s.Runtime.Modelled()
	l.Dir = m.resultOf(l)
	l.Args = []string{"tune", m.dir.path(l.ID, studyFile), "--out", l.Dir}
	if r.Strategy != "" {
		l.Args = append(l.Args, "--strategy", r.Strategy)
	}
	return nil
}

// lookup looks into the environment that launches have.
func (m maker) lookup(name string) (value string, set bool) {
	for _, pair := range m.o.Env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value, set = v, true // the last one counts
		}
	}
	return value, set
}

// describeBench makes a command line of flags.
func (m maker) describeBench(l *Launch, r *BenchRequest) error {
	if err := m.checker().Bench(r.Flags); err != nil {
		return err
	}
	targets, services := r.Flags["base-url"], r.Flags["kube-service"]
	if len(targets) == 0 && len(services) == 0 {
		host, port := "127.0.0.1", "8000"
		if v := r.Flags["host"]; len(v) > 0 {
			host = v[len(v)-1]
		}
		if v := r.Flags["port"]; len(v) > 0 {
			port = v[len(v)-1]
		}
		targets = []string{"http://" + host + ":" + port}
	}
	var urls []string
	for _, t := range targets {
		urls = append(urls, strings.Split(t, ",")...)
	}
	l.Kind, l.Flags, l.Place = Bench, maps.Clone(r.Flags), endpoints(urls)
	if len(services) > 0 { // the last counts, and is one place whatever port of it is meant
		name, _, _ := strings.Cut(services[len(services)-1], ":")
		l.Place = append(l.Place, serviceSpot(name))
	}
	l.Name = cmp.Or(redact.Text(redact.Printable(r.Name)), "bench of "+l.Place.Text())
	l.Dir = m.resultOf(l)
	l.Args = []string{"bench"}
	for _, name := range slices.Sorted(maps.Keys(r.Flags)) {
		for _, v := range r.Flags[name] {
			l.Args = append(l.Args, "--"+name+"="+v)
		}
	}
	l.Args = append(l.Args, "--out", l.Dir)
	if !slices.Equal(redact.Argv(l.Args), l.Args) {
		return errors.New("a flag holds a secret: leave it out; bench takes the API key from OPENAI_API_KEY in the environment of perflab serve")
	}
	return nil
}

// unfit are the bytes that a directory's name is spared.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// resultOf is the directory that a launch makes.
func (m maker) resultOf(l *Launch) string {
	if m.o.Results == "" {
		return m.dir.path(l.ID, resultDir)
	}
	name := strings.Trim(unfit.ReplaceAllString(l.Name, "-"), ".-")
	if len(name) > 60 {
		name = name[:60]
	}
	return filepath.Join(m.o.Results, cmp.Or(name, string(l.Kind))+"-"+l.ID)
}
