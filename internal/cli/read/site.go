package read

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/dirdoc"
	"perflab/internal/site"
	"perflab/internal/source"
)

// NewSite is perflab site: directories published as static pages.
func NewSite(env console.Env) *cobra.Command {
	var s site.Site
	var out, date string
	c := &cobra.Command{
		Use:   "site DIR...",
		Short: "Publish studies, imports and runs as static pages with an overview, a feed and a search",
		Long: `Publish what directories hold as a site of static pages: an overview (models and
hardware, best configuration, gain with its interval, date), a page for each
study, model and GPU, with all result blocks, plots and serving commands, what
perflab audit finds, an Atom feed, and a search that needs no server.

Takes study directories, those of imported files, of series (bench --sweep,
--find-max, --repeat) and of runs. Pages link to each other by relative paths and
load nothing from elsewhere: open index.html from the disk, or copy the directory
to any web server. The same directories give the same bytes.

A site is written anew as a whole: pages that are no more are taken away, and a
directory that holds something else is refused. docs/publish.md says more.`,
		Example: `  perflab site perflab-out/quickstart perflab-out/imported/* --out site
  perflab site studies/* --out site --title "GPU laboratory" --url https://lab.example.org/ --date 2026-03-01`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.WantArgs(1, "a study, import, series or run directory")(c, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runSite(env, s, out, date, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&out, "out", "site", "directory to write")
	fs.StringVar(&s.Title, "title", "Performance laboratory", "title of the site")
	fs.StringVar(&s.URL, "url", "", "where it will be published, for the links of the feed (default relative ones)")
	fs.StringVar(&date, "date", "", "day of this publication, 2026-03-01: the feed dates by it what has no date of its own")
	return c
}

func runSite(env console.Env, s site.Site, out, date string, dirs []string) error {
	var err error
	if date != "" {
		if s.Date, err = time.Parse(time.DateOnly, date); err != nil {
			return console.Usage(fmt.Errorf("--date %q is no day: write it as 2026-03-01", date))
		}
	}
	if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || u.Scheme == "" || u.Host == "") {
		return console.Usage(fmt.Errorf("--url %q is no address: write it as https://lab.example.org/", s.URL))
	}
	for _, dir := range source.WithoutImportFiles(dirs) {
		e, damage, err := dirdoc.Entry(dir)
		if err != nil {
			return usage(err)
		}
		if damage != "" {
			fmt.Fprintf(env.Stderr, "perflab: not everything could be read: %s\n", damage)
		}
		s.Entries = append(s.Entries, e)
	}
	files, err := s.Files()
	if err != nil {
		return err
	}
	manifest, err := site.WriteManifest(files)
	if err != nil {
		return err
	}
	tree := dirdoc.Tree{Dir: out, Manifest: site.Manifest, Read: site.ReadManifest}
	err = tree.Write(files, manifest, func(path string, b []byte) error {
		return env.WriteText(path, func(w io.Writer) error { _, err := w.Write(b); return err })
	})
	if err != nil {
		return usage(err)
	}
	for _, title := range s.Undated() {
		fmt.Fprintf(env.Stderr, "perflab: not in the feed, since it has no date: %s (give --date)\n", title)
	}
	fmt.Fprintf(env.Stdout, "Site: %s, %s\n", filepath.Join(out, "index.html"), console.Plural(len(files), "file"))
	return nil
}
