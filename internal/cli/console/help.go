package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroup is a heading of a command's help, with its flags in their order.
type FlagGroup struct {
	Title string
	Flags string // names, by spaces
}

// HelpWidth is how wide the text of a flag may be.
const HelpWidth = 100

// GroupHelp has a command print its flags under headings.
func GroupHelp(c *cobra.Command, groups []FlagGroup) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
		for _, g := range groups {
			fmt.Fprintf(&b, "\n%s:\n%s", g.Title, section(c.Flags(), g).FlagUsagesWrapped(HelpWidth))
		}
		_, err := fmt.Fprint(c.OutOrStderr(), b.String())
		return err
	})
}

// section is the flags of a group.
func section(all *pflag.FlagSet, g FlagGroup) *pflag.FlagSet {
	fs := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
	fs.SortFlags = false
	for name := range strings.FieldsSeq(g.Flags) {
		if f := all.Lookup(name); f != nil {
			fs.AddFlag(f)
		}
	}
	return fs
}

// Pairs reads KEY=VALUE of a flag that was given several times.
func Pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, item := range list {
		k, v, ok := strings.Cut(item, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%s needs KEY=VALUE", flag) // the value may be a secret: not shown
		}
		out[k] = v
	}
	return out, nil
}

// MakeRepeatable gives a flag of one load another value and text, for a list of them.
func MakeRepeatable(fs *pflag.FlagSet, name string, v pflag.Value, usage string) {
	flag := fs.Lookup(name)
	flag.Usage = usage
	if v != nil {
		flag.Value = v
	}
}
