package translate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocuments holds the tables of docs/from-*.md.
func TestDocuments(t *testing.T) {
	for _, c := range []*client{guidellm(), aiperf()} {
		path := filepath.Join("..", "..", "..", "docs", "from-"+c.name+".md")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, ok := strings.Cut(string(b), "<!-- flags: "+c.name+" -->\n")
		_, tail, closed := strings.Cut(rest, "<!-- end of flags -->\n")
		if !ok || !closed {
			t.Fatalf("%s has no place for its table", path)
		}
		want := head + "<!-- flags: " + c.name + " -->\n" + flagTable(c) + "<!-- end of flags -->\n" + tail
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if d := cmp.Diff(want, string(b)); d != "" {
			t.Errorf("%s is stale (make docs writes it):\n%s", path, d)
		}
	}
}

// flagTable is the table of a client's flags.
func flagTable(c *client) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Of %s.\n\n| %s | `perflab bench` | What differs |\n| --- | --- | --- |\n", c.title(), c.name)
	code := func(text string) string {
		var parts []string
		for part := range strings.SplitSeq(text, "|") {
			parts = append(parts, "`"+part+"`")
		}
		return strings.Join(parts, ", ")
	}
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	for _, k := range []kind{carried, unneeded, refused} {
		for _, r := range c.rows {
			if r.kind != k {
				continue
			}
			to := r.to
			switch {
			case k == unneeded:
				to = "not needed"
			case k == refused:
				to = "**refused**"
			case !strings.Contains(to, " ") || strings.Count(to, "--") == 1 && strings.HasPrefix(to, "--"):
				to = code(to)
			}
			says := r.says
			if r.unless != "" && k == refused {
				says += " (" + code(r.unless) + " is taken)"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", code(r.flags), cell.Replace(to), cell.Replace(says))
		}
	}
	return b.String()
}
