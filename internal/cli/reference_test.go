package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/cli/measure"
	"perflab/internal/cli/plan"
)

// commandsMarkdown is the reference of all commands, from the commands themselves.
func commandsMarkdown() string {
	root := newRoot(console.Env{Getenv: func(string) string { return "" }})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString("# Commands\n\nWhat `perflab COMMAND --help` says, on one page. Bounds, lengths and rates have the spelling of a study file's keys, with `-` for `_`.\n\n")
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "- %s", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && !c.Hidden {
				fmt.Fprintf(&b, " [`%s`](#perflab-%s)", c.Name(), c.Name())
			}
		}
		b.WriteString("\n")
	}
	for _, g := range root.Groups() {
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && !c.Hidden {
				commandMarkdown(&b, c)
			}
		}
	}
	return b.String()
}

func commandMarkdown(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindented(c.Example))
	}
	if c.Long != "" && c.Name() != "help" {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.TrimSpace(c.Long))
	}
	groups := []console.FlagGroup{{}}
	switch c.Name() {
	case "bench":
		groups = measure.BenchHelp().Groups
	case "predict":
		groups = plan.PredictHelp().Groups
	}
	for _, g := range groups {
		flagsMarkdown(b, c, g)
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			fmt.Fprintf(b, "\n- `%s`: %s\n", sub.UseLine(), sub.Short)
		}
	}
}

// flagsMarkdown is a table of the flags under a heading; one without a title has all of them.
func flagsMarkdown(b *strings.Builder, c *cobra.Command, g console.FlagGroup) {
	var rows []*pflag.Flag
	if g.Title == "" {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { rows = append(rows, f) })
	}
	for name := range strings.FieldsSeq(g.Flags) {
		rows = append(rows, c.Flags().Lookup(name))
	}
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`)
	begun := false
	for _, f := range rows {
		if f == nil || f.Hidden || f.Name == "help" {
			continue
		}
		if !begun {
			begun = true
			fmt.Fprintf(b, "\n| %s | | default |\n| --- | --- | --- |\n", escape.Replace(orFlag(g.Title)))
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + kind)
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, escape.Replace(usage), defaultOf(f))
	}
}

func orFlag(title string) string {
	if title == "" {
		return "Flag"
	}
	return title
}

// defaultOf is the default of a flag; "" for one that says nothing.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	return "`" + f.DefValue + "`"
}

func unindented(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, strings.TrimPrefix(line, "  "))
	}
	return strings.Join(out, "\n")
}
