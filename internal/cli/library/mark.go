package library

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/field"
	"perflab/internal/store"
	"perflab/internal/store/mark"
)

const tagLong = `Tag entries, or take tags off: +TAG gives one, -TAG takes it off. Arguments without a
sign are the entries, by ID, the beginning of it, name or directory.

Tags are kept in .perflab/marks.jsonl below the directory of results, with who gave them
and when. The file is only added to, and an index that is made anew loses none.`

// NewTag is perflab tag: tags and pins of entries.
func NewTag(env console.Env) *cobra.Command {
	var p place
	var pin, unpin bool
	c := &cobra.Command{
		Use:     "tag ID... +TAG... -TAG...",
		Short:   "Tag runs and studies, or pin them to the top of lists",
		Long:    tagLong,
		Example: "  perflab tag 3fe1c20b77 +release +keep\n  perflab tag perflab-out/quickstart -old\n  perflab tag 3fe1c20b77 --pin",
		// -TAG would be taken for short flags.
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := withoutTags(c, args)
			if errors.Is(err, pflag.ErrHelp) {
				return c.Help()
			}
			if err != nil {
				return err
			}
			what, records, err := taggings(args)
			if err != nil {
				return console.Usage(err)
			}
			if pin && unpin {
				return console.Usage(errors.New("--pin and --unpin exclude each other: give one"))
			}
			if pin {
				records = append(records, mark.Record{Do: mark.Pin})
			}
			if unpin {
				records = append(records, mark.Record{Do: mark.Unpin})
			}
			if len(what) == 0 || len(records) == 0 {
				return console.Usage(errors.New("perflab tag needs an entry and what to say of it, such as: perflab tag 3fe1c20b77 +keep"))
			}
			return p.mark(c.Context(), env, what, records)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&pin, "pin", false, "keep them at the top of lists")
	c.Flags().BoolVar(&unpin, "unpin", false, "no more")
	p.add(c)
	c.ValidArgsFunction = p.entries(env)
	return c
}

// withoutTags reads the flags of a command line whose words may be -TAG.
func withoutTags(c *cobra.Command, args []string) (words []string, err error) {
	var flags, tags []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && a != "-h" {
			tags = append(tags, a)
		} else {
			flags = append(flags, a)
		}
	}
	if err := c.Flags().Parse(flags); err != nil {
		return nil, c.FlagErrorFunc()(c, err)
	}
	if help, err := c.Flags().GetBool("help"); err != nil || help {
		return nil, errors.Join(err, pflag.ErrHelp)
	}
	return append(c.Flags().Args(), tags...), nil
}

// taggings takes entries and tags apart.
func taggings(args []string) (what []string, records []mark.Record, err error) {
	for _, a := range args {
		r := mark.Record{Do: mark.Tag, Value: strings.TrimLeft(a, "+-")}
		switch {
		case strings.HasPrefix(a, "+"):
		case strings.HasPrefix(a, "-"):
			r.Do = mark.Untag
		default:
			what = append(what, a)
			continue
		}
		if r.Value == "" {
			return nil, nil, fmt.Errorf("%q names no tag: write it as +keep or -keep", a)
		}
		records = append(records, r)
	}
	return what, records, nil
}

// NewNote is perflab note: what somebody says of an entry.
func NewNote(env console.Env) *cobra.Command {
	var p place
	var name, issue, resolve, link string
	var clear bool
	c := &cobra.Command{
		Use:   "note ID [TEXT]",
		Short: "Write a note on a run or a study, give it a name, or mark a known issue",
		Long: `Write what is to be known of an entry beside it: a note, which takes the place of an
earlier one, a name, or a known issue that its figures suffer from. Who said it and when
is kept, as with perflab tag.`,
		Example: `  perflab note 3fe1c20b77 "driver 580.1, before the fan was replaced"
  perflab note perflab-out/run-7 --name "baseline of May"
  perflab note 3fe1c20b77 "clocks were capped" --issue gpu-clock --link https://issues.example.org/7`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usage(errors.New("perflab note needs an entry and a text, such as: perflab note 3fe1c20b77 \"before the new driver\""))
			}
			text := strings.Join(args[1:], " ")
			if link != "" && issue == "" {
				return console.Usage(errors.New("--link is where a known issue is described: give its ID with --issue"))
			}
			var records []mark.Record
			switch {
			case issue != "":
				records = append(records, mark.Record{Do: mark.Issue, Value: issue, Text: text, Link: link})
			case clear && text != "":
				return console.Usage(errors.New("--clear takes the note away: give it without a text"))
			case clear || text != "":
				records = append(records, mark.Record{Do: mark.Note, Text: text})
			}
			if c.Flags().Changed("name") {
				records = append(records, mark.Record{Do: mark.Name, Value: name})
			}
			if resolve != "" {
				records = append(records, mark.Record{Do: mark.Resolve, Value: resolve})
			}
			if len(records) == 0 {
				return console.Usage(errors.New("perflab note needs a text, --name, --issue, --resolve or --clear (see perflab note --help)"))
			}
			return p.mark(c.Context(), env, args[:1], records)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "name", "", "what the entry is called in lists; empty: as its directory again")
	fs.StringVar(&issue, "issue", "", "ID of a known issue, which the text describes")
	fs.StringVar(&link, "link", "", "where the issue is described")
	fs.StringVar(&resolve, "resolve", "", "ID of an issue that the entry has no more")
	fs.BoolVar(&clear, "clear", false, "take the note away")
	p.add(c)
	c.ValidArgsFunction = p.entries(env)
	return c
}

// mark says something of entries, after all of them were found.
func (p *place) mark(ctx context.Context, env console.Env, what []string, records []mark.Record) error {
	for _, r := range records {
		r.Entry = "x" // which the index fills in
		err := r.Validate()
		if e, ok := errors.AsType[*field.Error](err); ok && e.Path != "link" {
			err = errors.New(e.Reason) // the value is an argument, which has no name
		}
		if err != nil {
			return console.Usage(err)
		}
	}
	return p.with(ctx, env, func(s *store.Store) error {
		entries, err := p.findAll(ctx, env, s, what)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.Mark(ctx, console.User(), e.ID, records...); err != nil {
				return err
			}
			if e, err = s.Get(ctx, e.ID); err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "%s\n", said(e))
		}
		return nil
	})
}

func (p *place) findAll(ctx context.Context, env console.Env, s *store.Store, what []string) ([]store.Entry, error) {
	var out []store.Entry
	var errs []error
	for _, w := range what {
		e, err := p.find(ctx, env, s, w)
		out, errs = append(out, e), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// said is an entry with its marks in a line.
func said(e store.Entry) string {
	line := e.ID[:min(len(e.ID), 10)] + " " + e.Called() + ":"
	if e.Marks.Pinned {
		line += " pinned"
	}
	for _, t := range e.Marks.Tags {
		line += " +" + t
	}
	if e.Marks.Note != "" {
		line += " " + fmt.Sprintf("%q", e.Marks.Note)
	}
	for _, i := range e.Marks.Issues {
		line += " issue " + i.ID
	}
	if strings.HasSuffix(line, ":") {
		line += " no marks"
	}
	return line
}
