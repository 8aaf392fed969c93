package console

import (
	"errors"
	"fmt"
	"strconv"
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

// Help is what a command with many flags tells of itself besides its description.
type Help struct {
	Usual  string // flags that --help shows, by spaces; empty: all. --help=all shows every one
	Groups []FlagGroup
	More   string // what else is told beside all flags
}

// GroupHelp has a command print its flags under headings.
func GroupHelp(c *cobra.Command, h Help) {
	asked := &helpFlag{}
	text := "show this help"
	if h.Usual != "" {
		text = "show the usual flags; --help=all shows every one"
	}
	c.Flags().VarPF(asked, "help", "h", text).NoOptDefVal = "true"
	c.SetUsageFunc(func(c *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
		if h.Usual != "" && !asked.all {
			fmt.Fprintf(&b, "\nUsual flags:\n%s", section(c.Flags(), FlagGroup{Flags: h.Usual}).FlagUsagesWrapped(HelpWidth))
			fmt.Fprintf(&b, "\n%d flags more: %s --help=all\n", visible(c.Flags())-len(strings.Fields(h.Usual)), c.CommandPath())
		} else {
			for _, g := range h.Groups {
				fmt.Fprintf(&b, "\n%s:\n%s", g.Title, section(c.Flags(), g).FlagUsagesWrapped(HelpWidth))
			}
			b.WriteString(h.More)
		}
		_, err := fmt.Fprint(c.OutOrStderr(), b.String())
		return err
	})
}

// helpFlag is --help, or --help=all.
type helpFlag struct{ asked, all bool }

func (h *helpFlag) Set(text string) error {
	var err error
	if h.all = text == "all"; h.all {
		text = "true"
	}
	if h.asked, err = strconv.ParseBool(text); err != nil {
		return errors.New("write --help or --help=all")
	}
	return nil
}

func (h *helpFlag) String() string { return strconv.FormatBool(h.asked) }

// Type is what the library wants of a flag of that name.
func (h *helpFlag) Type() string { return "bool" }

// visible counts the flags that a help shows.
func visible(fs *pflag.FlagSet) (n int) {
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	return n
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
