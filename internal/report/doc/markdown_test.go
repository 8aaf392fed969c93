package doc

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestMarkdownText(t *testing.T) {
	for in, want := range map[string]string{
		"total_token_throughput": "total_token_throughput", "_em_ *b* `c` [d]": `\_em\_ \*b\* \` + "`c\\` \\[d\\]",
		"a | b\nc": `a \| b c`, "<b> && A < B": "&lt;b> &amp;&amp; A &lt; B", "~~x~~": `\~\~x\~\~`,
		"(_x_) a_b 2_é": `(\_x\_) a_b 2_é`,
	} {
		if got := mdText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"": "", "a|b": "`a\\|b`", "`": "`` ` ``"} {
		if got := mdCode(in); got != want {
			t.Errorf("code %q: %q, want %q", in, got, want)
		}
	}
}

// TestHostileText: a name that a server or a file chose stays text in every
// form, wherever it stands: it steers no terminal, begins no heading, list, cell,
// row, link or tag, and ends no code.
func TestHostileText(t *testing.T) {
	const steering = "\x1b[31m\x1b]52;c;aGk=\x07\u009b1m\u202e\u2066\r"
	for _, name := range []string{
		"# heading", "- point", "1. first", "> quoted", "---", "| a | b |", "`tick`", "```", "a\n\n# heading\n| x |", "<script>alert(1)</script>", "[text](http://evil)",
		"![x](http://evil)", "</code></details>", "a\tb", "\" onmouseover=\"x", "a\u2028# b", "a\u0085# b",
	} {
		hostile := steering + name + steering
		d := New(hostile, hostile, "the test")
		s := d.Body.Section("id", "Names")
		s.Text(hostile)
		s.Para(hostile)
		s.Styled(Everywhere, "note", hostile)
		s.Para(Bold(hostile), " is ", Code(hostile))
		s.List(Everywhere, hostile)
		s.Add(Everywhere, Definitions{{Name: hostile, Text: hostile}})
		s.Add(Everywhere, Pre{Text: hostile, Summary: hostile})
		s.Add(Everywhere, Table{Columns: Columns("Name", "N"), Rows: []Row{Cells(hostile, "1"), Cells(Code(hostile), "2")}})
		var text, md, page bytes.Buffer
		if err := Text(&text, d); err != nil {
			t.Fatal(err)
		}
		if err := Markdown(&md, d); err != nil {
			t.Fatal(err)
		}
		if err := HTML(&page, d); err != nil {
			t.Fatal(err)
		}
		for form, got := range map[string]string{"text": text.String(), "Markdown": md.String(), "HTML": page.String()} {
			if strings.ContainsAny(got, "\x1b\a\r\u009b\u202e\u2066\u2028\u0085") {
				t.Errorf("%q steers a terminal in %s", name, form)
			}
		}
		if strings.Contains(page.String(), "<script>alert") || strings.Contains(page.String(), `" onmouseover="x`) {
			t.Errorf("%q is a tag of the page", name)
		}
		checkMarkdown(t, name, md.String())
	}
}

var inCode = regexp.MustCompile("`` .*? ``|```` .*? ````|`[^`]+`")

// checkMarkdown looks for marks at the starts of lines outside of fences that the
// document of TestHostileText has not made.
func checkMarkdown(t *testing.T, name, md string) {
	t.Helper()
	fence, rows := "", 0
	for line := range strings.SplitSeq(md, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if trimmed == fence {
				fence = ""
			}
			continue
		case strings.HasPrefix(trimmed, "```"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
			continue
		}
		plain := strings.NewReplacer(`\|`, "", `\[`, "", `\]`, "", "\\`", "").Replace(trimmed)
		plain = inCode.ReplaceAllString(plain, "code")
		bad := false
		switch {
		case strings.HasPrefix(plain, "|"):
			rows++
			bad = strings.Count(plain, "|") != 3
		case strings.HasPrefix(plain, "# "):
			bad = strings.TrimSpace(plain[2:]) == ""
		case strings.HasPrefix(plain, "- "):
			bad = blockMark.MatchString(plain[2:])
		case strings.HasPrefix(plain, "<details") || strings.HasPrefix(plain, "</details>"):
		default:
			bad = blockMark.MatchString(plain) && !strings.HasPrefix(plain, "## Names") && !strings.HasPrefix(plain, "> ")
		}
		if bad || strings.Contains(plain, "](http") || strings.Contains(plain, "<script") {
			t.Errorf("%q is more than text in the line %q", name, line)
		}
	}
	if rows != 4 {
		t.Errorf("%q: the table has %d lines, want 4", name, rows)
	}
	if fence != "" {
		t.Errorf("%q leaves a fence open", name)
	}
}
