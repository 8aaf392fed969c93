package dirdoc

import (
	"cmp"
	"errors"
	"path/filepath"

	"perflab/internal/report/audited"
	"perflab/internal/rundir"
	"perflab/internal/site"
	"perflab/internal/source"
)

// Entry is a directory as it is published on a site, with its report and what an audit finds.
// damage is what could not be read.
func Entry(dir string) (e site.Entry, damage string, err error) {
	d, err := Open([]string{dir}, Options{})
	if err != nil {
		return site.Entry{}, "", err
	}
	p, name := source.Audit(dir), filepath.Base(filepath.Clean(dir))
	a := audited.Audit{Files: p.Files, Findings: p.Findings}
	if rundir.IsStudy(dir) {
		study, err := rundir.OpenStudy(dir)
		return site.OfStudy(name, study, d.Page(), a), d.Damage, err
	}
	runs, ok, err := rundir.Runs(dir)
	if err != nil || !ok {
		return site.Entry{}, d.Damage, cmp.Or(err, errors.New(dir+" holds no run"))
	}
	sides, _, err := Options{}.Sides(runs)
	page := d.Page()
	return site.OfRuns(name, cmp.Or(p.Title, page.Body.Title), sides, page, a), d.Damage, err
}
