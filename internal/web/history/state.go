package history

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/drift"
	"perflab/internal/lineage"
	"perflab/internal/result"
	"perflab/internal/trend"
	"perflab/internal/web/page"
)

// state is what an address asks for; what is usual is not in it.
type state struct {
	Q       string   // filter of runs
	Metric  string   // that is shown large
	Metrics []string // that are shown small
	Builds  bool     // a point is a build
	Even    bool     // one place for each point, instead of dates
	Least   float64  // percent
	Level   float64
	Persist int
	From    string
	To      string
	Single  bool   // of the list: what was measured once too
	Is      string // of the list: a standing, or stale
	Page    int    // of the list, from 1
}

// parse reads an address.
func parse(q url.Values) (state, error) {
	s := state{
		Q: strings.TrimSpace(q.Get("q")), Builds: q.Get("by") == "build", Even: q.Get("x") == "build", From: strings.TrimSpace(q.Get("from")), To: strings.TrimSpace(q.Get("to")),
		Single: q.Get("single") == "1", Is: q.Get("is"), Page: 1, Metric: trend.DefaultMetrics()[0],
		Least: 100 * drift.DefaultLeast, Level: drift.DefaultLevel, Persist: drift.DefaultPersist,
	}
	if name := strings.TrimSpace(q.Get("metric")); name != "" {
		m, err := result.Lookup(name)
		if err != nil {
			return s, page.Bad(err.Error())
		}
		s.Metric = m.Name
	}
	for name := range strings.FieldsFuncSeq(q.Get("metrics"), func(r rune) bool { return r == ',' || r == ' ' }) {
		m, err := result.Lookup(name)
		if err != nil {
			return s, page.Bad(err.Error())
		}
		if !slices.Contains(s.Metrics, m.Name) {
			s.Metrics = append(s.Metrics, m.Name)
		}
	}
	if len(s.Metrics) > mostMetrics {
		return s, page.Bad("at most " + strconv.Itoa(mostMetrics) + " metrics are shown beside each other: name fewer")
	}
	var err error
	if s.Least, err = number(q, "least", s.Least, "a percentage such as 2"); err != nil {
		return s, err
	}
	if s.Level, err = number(q, "level", s.Level, "a chance such as 0.01"); err != nil {
		return s, err
	}
	if text := q.Get("persist"); text != "" {
		if s.Persist, err = strconv.Atoi(text); err != nil || s.Persist < 1 || s.Persist > 1000 {
			return s, page.Bad("persist: " + strconv.Quote(text) + " is no number of builds: write 3")
		}
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 1 {
		s.Page = n
	}
	return s, nil
}

// mostMetrics bounds a page.
const mostMetrics = 12

func number(q url.Values, name string, usual float64, example string) (float64, error) {
	text := strings.TrimSuffix(strings.TrimSpace(q.Get(name)), "%")
	if text == "" {
		return usual, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, page.Bad(name + ": " + strconv.Quote(text) + " is no number: write " + example)
	}
	return v, nil
}

// query is the address of the state, without what is usual.
func (s state) query() string {
	q := url.Values{}
	usual, _ := parse(url.Values{})
	set := func(name, value string, differs bool) {
		if differs {
			q.Set(name, value)
		}
	}
	set("q", s.Q, s.Q != "")
	set("metric", s.Metric, s.Metric != usual.Metric)
	set("metrics", strings.Join(s.Metrics, ","), len(s.Metrics) > 0)
	set("by", "build", s.Builds)
	set("x", "build", s.Even)
	set("least", strconv.FormatFloat(s.Least, 'g', -1, 64), s.Least != usual.Least)
	set("level", strconv.FormatFloat(s.Level, 'g', -1, 64), s.Level != usual.Level)
	set("persist", strconv.Itoa(s.Persist), s.Persist != usual.Persist)
	set("from", s.From, s.From != "")
	set("to", s.To, s.To != "")
	set("single", "1", s.Single)
	set("is", s.Is, s.Is != "")
	set("page", strconv.Itoa(s.Page), s.Page > 1)
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// names are those of the state in an address; what else is there belongs to scripts.
var names = []string{"q", "metric", "metrics", "by", "x", "least", "level", "persist", "from", "to", "single", "is", "page"}

// tidy is the address with what is not usual alone; ok says that it was so.
func (s state) tidy(u *url.URL) (to string, ok bool) {
	was := u.Query()
	q := u.Query()
	for _, name := range names {
		q.Del(name)
	}
	own, _ := url.ParseQuery(strings.TrimPrefix(s.query(), "?")) // which was encoded above
	maps.Copy(q, own)
	if q.Encode() == was.Encode() {
		return "", true
	}
	if len(q) == 0 {
		return u.EscapedPath(), false
	}
	return u.EscapedPath() + "?" + q.Encode(), false
}

// options are those of the state for package trend.
func (s state) options() trend.Options {
	o := trend.Options{Filter: s.Q, Least: s.Least / 100, Level: s.Level, Persist: s.Persist, From: s.From, To: s.To, Metrics: s.small()}
	if s.Builds {
		o.By = lineage.Builds
	}
	if !slices.Contains(o.Metrics, s.Metric) {
		o.Metrics = append([]string{s.Metric}, o.Metrics...)
	}
	if o.Least == 0 { // every change is asked for, and 0 means the usual there
		o.Least = leastOfAll
	}
	return o
}

// leastOfAll is a change that nobody would call one.
const leastOfAll = 1e-9

// small are the metrics that are shown small.
func (s state) small() []string {
	if len(s.Metrics) > 0 {
		return slices.Clone(s.Metrics)
	}
	return trend.DefaultMetrics()
}

// LeastText and LevelText are what fields of the form show.
func (s state) LeastText() string { return strconv.FormatFloat(s.Least, 'g', -1, 64) }

// LevelText is the level as its field shows it.
func (s state) LevelText() string { return strconv.FormatFloat(s.Level, 'g', -1, 64) }
