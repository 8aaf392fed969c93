package block

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"perflab/internal/result"
)

// CacheRows are what the engine found of the prompts in its prefix cache beside what it could have found,
// as a reader takes them in; none where that is not known.
func CacheRows(s result.Summary) []TelemetryRow {
	if _, ok := s.Figures["possible_prefix_hit_ratio"]; !ok {
		return nil
	}
	var rows []TelemetryRow
	for _, x := range []struct{ name, label string }{
		{"prefix_hit_ratio", "Found, by the engine's counters"}, {"cached_token_ratio", "Found, by its answers"},
		{"fitting_prefix_hit_ratio", "Possible with its room"}, {"routed_prefix_hit_ratio", "Possible as routed"},
		{"possible_prefix_hit_ratio", "Possible"},
	} {
		if v, ok := s.Figures[x.name]; ok {
			rows = append(rows, TelemetryRow{x.label, fmt.Sprintf("%.1f %%", 100*v)})
		}
	}
	rows[0].Value += " of the prompt tokens"
	if v, ok := s.Figures["kv_cache_tokens"]; ok {
		rows = append(rows, TelemetryRow{"Room", fmt.Sprintf("%.0f tokens", v)})
	}
	return rows
}

// Cache returns the lines of CacheRows, "" for none.
func Cache(s result.Summary) string { return lines(CacheTitle, CacheRows(s)) }

// CacheTitle is what to put above these.
const CacheTitle = "Prefix cache"

// lines are rows under a title, "" without any.
func lines(title string, rows []TelemetryRow) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%s\n", row.Label, row.Value)
	}
	w.Flush() // into a strings.Builder, which never fails
	return title + "\n" + b.String()
}
