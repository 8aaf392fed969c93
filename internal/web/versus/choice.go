package versus

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/web/page"
)

// choice is what the address of a page says.
type choice struct {
	IDs     []string // what is compared; the first is the baseline
	By      string   // key of the fact that is compared; "": found
	Metrics []string // figures; nil: those of the block
	All     bool     // every figure
	Same    bool     // facts in which the sides agree are shown too
	Alone   bool     // each run is a side of its own
	SLOs    []result.SLO
	SLOText string
}

// mostIDs bounds a page.
const mostIDs = 64

// parse reads an address.
func parse(q url.Values) (choice, error) {
	c := choice{By: q.Get("by"), All: q.Get("all") == "1", Same: q.Get("same") == "1", Alone: q.Get("alone") == "1", SLOText: strings.TrimSpace(q.Get("slo"))}
	for _, list := range slices.Concat(q["run"], q["ids"]) {
		for id := range strings.SplitSeq(list, ",") {
			if id = strings.TrimSpace(id); id != "" && !slices.Contains(c.IDs, id) {
				c.IDs = append(c.IDs, id)
			}
		}
	}
	if len(c.IDs) > mostIDs {
		return c, page.Bad(fmt.Sprintf("%d runs are more than a page can compare: tick %d at most", len(c.IDs), mostIDs))
	}
	if first := q.Get("base"); slices.Contains(c.IDs, first) {
		c.IDs = slices.Insert(slices.DeleteFunc(c.IDs, func(id string) bool { return id == first }), 0, first)
	}
	for name := range strings.FieldsFuncSeq(q.Get("metrics"), func(r rune) bool { return r == ',' || r == ' ' }) {
		m, err := result.Lookup(name)
		if err != nil {
			return c, page.Bad(err.Error())
		}
		c.Metrics = append(c.Metrics, m.Name)
	}
	if c.SLOText != "" {
		var err error
		if c.SLOs, err = result.ParseSLOs(c.SLOText); err != nil {
			return c, page.Bad("the SLO cannot be read: " + err.Error())
		}
	}
	return c, nil
}

// query is the address of a choice, without what is usual.
func (c choice) query() string { return c.values().Encode() }

// values are what the address says.
func (c choice) values() url.Values {
	q := url.Values{"run": c.IDs}
	for _, x := range []struct {
		key, value string
	}{{"by", c.By}, {"metrics", strings.Join(c.Metrics, ",")}, {"all", flag(c.All)}, {"same", flag(c.Same)}, {"alone", flag(c.Alone)}, {"slo", c.SLOText}} {
		if x.value != "" {
			q.Set(x.key, x.value)
		}
	}
	return q
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// with is the address of a choice with a change.
func (c choice) with(base string, change func(*choice)) string {
	c.IDs = slices.Clone(c.IDs)
	change(&c)
	return base + "/compare?" + c.query()
}
