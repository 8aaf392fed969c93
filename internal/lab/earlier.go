package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"perflab/internal/earlier"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
)

// earlierFile is what a study took from earlier ones when it began, with their figures: a
// study that goes on must search as it began, whatever has become of them.
const earlierFile = "earlier.json"

// keptEarlier is the content of earlierFile.
type keptEarlier struct {
	Schema  string            `json:"schema"`
	Studies []outcome.Earlier `json:"studies"`
}

const earlierSchema = "perflab.earlier/1"

// learn gives the study what it takes from earlier ones: a new study what they hold now, one
// that goes on what it began with.
func (l *session) learn() error {
	named := l.Study.Earlier
	var kept keptEarlier
	switch {
	case l.Resume:
		path := filepath.Join(l.Dir, earlierFile)
		if err := rundir.ReadJSON(path, &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: without it the study cannot go on as it began", err)
		}
		for _, name := range named {
			shown := l.Options.Secrets.Text(name)
			if !slices.ContainsFunc(kept.Studies, func(e outcome.Earlier) bool { return e.Path == shown }) {
				return fmt.Errorf("resume %s: it did not begin with the earlier study %s: leave that out, or begin another study with it", l.Dir, shown)
			}
		}
	case len(named) > 0:
		if l.Options.Earlier == nil {
			return errors.New("the study names earlier ones, and nobody is there to read them")
		}
		facts, err := l.Options.Earlier(l.Study)
		if err != nil {
			return err
		}
		b, err := json.MarshalIndent(keptEarlier{earlierSchema, facts}, "", "  ")
		if err != nil {
			return fmt.Errorf("encode %s: %w", earlierFile, err)
		}
		l.learned = append(l.Options.Secrets.JSON(b), '\n')
		if err := json.Unmarshal(l.learned, &kept); err != nil { // as it is read when it goes on
			return fmt.Errorf("read %s again: %w", earlierFile, err)
		}
	}
	l.Known = earlier.Known(kept.Studies)
	for _, e := range kept.Studies {
		e.Measured = nil
		l.facts.earlier = append(l.facts.earlier, e)
	}
	return nil
}
