package main

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"perflab/internal/cli"
)

// services are the files by which systemd runs the laboratory's server, by their names in archives.
var services = map[string]string{"systemd/perflab.service": "docs/serve/perflab.service", "systemd/perflab.sysusers": "docs/serve/perflab.sysusers"}

// documents are what every archive has beside the program: licence, README, the service, manual pages
// and completions.
func (r *release) documents() ([]file, error) {
	var out []file
	names := []string{"LICENSE", "README.md"}
	for _, name := range append(names, slices.Sorted(maps.Keys(services))...) {
		b, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(cmp.Or(services[name], name))))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name, 0o644, b})
	}
	root := cli.Command()
	pages, err := r.manual(root)
	if err != nil {
		return nil, err
	}
	completions, err := completions(root)
	return append(append(out, pages...), completions...), err
}

// manual is a page of each command that help lists.
func (r *release) manual(c *cobra.Command) ([]file, error) {
	c.DisableAutoGenTag = true // with the day on which it was made
	c.Long = listsKept(c.Long)
	var b bytes.Buffer
	head := &doc.GenManHeader{Section: "1", Source: "perflab " + r.version, Manual: "perflab", Date: &r.at}
	if err := doc.GenMan(c, head, &b); err != nil {
		return nil, err
	}
	name := c.CommandPath()
	out := []file{{"man/" + string(bytes.ReplaceAll([]byte(name), []byte(" "), []byte("-"))) + ".1", 0o644, b.Bytes()}}
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			continue
		}
		pages, err := r.manual(below)
		if err != nil {
			return nil, err
		}
		out = append(out, pages...)
	}
	return out, nil
}

// listsKept marks lines that are indented as text to leave as it is: a manual page is made as
// Markdown, in which they would flow together.
func listsKept(text string) string {
	const mark = "    "
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			b.WriteString(mark)
		}
		b.WriteString(line)
	}
	return b.String()
}

func completions(root *cobra.Command) ([]file, error) {
	var out []file
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"perflab.bash", func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
		{"_perflab", root.GenZshCompletion},
		{"perflab.fish", func(w io.Writer) error { return root.GenFishCompletion(w, true) }},
		{"perflab.ps1", root.GenPowerShellCompletionWithDesc},
	} {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			return nil, err
		}
		out = append(out, file{"completions/" + c.name, 0o644, b.Bytes()})
	}
	return out, nil
}
