package runs

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"perflab/internal/store"
	"perflab/internal/store/mark"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

// mostMarked bounds what one form marks or deletes.
const mostMarked = 500

// marksView is the page on which entries are marked.
type marksView struct {
	Entries []entryView
	One     *entryView // where it is one
	Back    string
	May     may
	Tags    []string // that any of them has
	Issues  []mark.KnownIssue
	Pinned  bool // all of them are
	Known   []store.Group
	Log     []mark.Record // of one
}

// serveMarks shows the form for the marks of what was ticked.
func (s *screen) serveMarks(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	ids := ticked(q)
	if one := q.Get("one"); one != "" { // of the row, whatever is ticked
		ids = []string{one}
	}
	all, err := s.entries(r.Context(), ids)
	if err != nil {
		return err
	}
	v := marksView{Back: back(q.Get("back")), May: s.may(r), Pinned: true}
	for _, e := range all {
		v.Entries = append(v.Entries, viewOf(e, ""))
		v.Tags = append(v.Tags, e.Marks.Tags...)
		v.Issues = append(v.Issues, e.Marks.Issues...)
		v.Pinned = v.Pinned && e.Marks.Pinned
	}
	slices.Sort(v.Tags)
	v.Tags = slices.Compact(v.Tags)
	v.Issues = distinct(v.Issues)
	if v.Known, err = s.o.Store.Groups(r.Context(), store.Query{}, "tag"); err != nil {
		return err
	}
	title := "Mark " + page.Plural(len(all), "entry")
	if len(all) == 1 {
		v.One, title = &v.Entries[0], "Mark "+v.Entries[0].Name
		if v.Log, err = s.o.Store.History(r.Context(), all[0].ID); err != nil {
			return err
		}
		slices.Reverse(v.Log)
	}
	return s.o.Pages.Show(w, r, s.marks, page.View{Title: title, Nav: "runs", Styles: styles, Data: v})
}

// distinct are known issues, one of each ID.
func distinct(all []mark.KnownIssue) []mark.KnownIssue {
	slices.SortStableFunc(all, func(a, b mark.KnownIssue) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b mark.KnownIssue) bool { return a.ID == b.ID })
}

// entries are those of a form.
func (s *screen) entries(ctx context.Context, ids []string) ([]store.Entry, error) {
	switch {
	case len(ids) == 0:
		return nil, &page.Problem{Status: http.StatusBadRequest, Text: "nothing is ticked", Hint: "Tick the rows of the list first."}
	case len(ids) > mostMarked:
		return nil, page.Bad("too many rows are ticked at once: 500 at most")
	}
	var out []store.Entry
	for _, id := range ids {
		e, err := s.entry(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// entry is an entry by what names it.
func (s *screen) entry(ctx context.Context, what string) (store.Entry, error) {
	e, err := s.o.Store.Get(ctx, what)
	if gone, ok := errors.AsType[*store.NotFoundError](err); ok {
		return e, &page.Problem{Status: http.StatusNotFound, Text: gone.Error(), Hint: "It may have been moved or deleted: look at the list, or into the trash."}
	}
	return e, err
}

// postMarks keeps what somebody says of entries.
func (s *screen) postMarks(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	records, ids, err := recordsOf(r.PostForm)
	if err != nil {
		return err
	}
	all, err := s.entries(r.Context(), ids)
	if err != nil {
		return err
	}
	who := guard.From(r.Context()).Name
	for _, e := range all {
		changes := changing(e, records)
		if len(changes) == 0 {
			continue
		}
		if err := s.o.Store.Mark(r.Context(), who, e.ID, changes...); err != nil {
			return storeProblem(err)
		}
	}
	http.Redirect(w, r, back(r.PostForm.Get("back")), http.StatusSeeOther)
	return nil
}

func formError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return page.Bad("the form cannot be read: " + err.Error())
}

// recordsOf are what a form says, and of which entries.
func recordsOf(f url.Values) (records []mark.Record, ids []string, err error) {
	for _, act := range []mark.Act{mark.Pin, mark.Unpin} {
		if id := f.Get(string(act)); id != "" { // the button of a row
			return []mark.Record{{Do: act}}, []string{id}, nil
		}
	}
	ids = ticked(f)
	do := mark.Act(f.Get("do"))
	value := strings.TrimSpace(f.Get("value"))
	switch do {
	case mark.Pin, mark.Unpin:
		records = append(records, mark.Record{Do: do})
	case mark.Tag, mark.Untag:
		for tag := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || c == ' ' }) {
			records = append(records, mark.Record{Do: do, Value: tag})
		}
		if len(records) == 0 {
			return nil, nil, page.Bad("there is no tag: write one or more, with spaces between")
		}
	case mark.Note:
		records = append(records, mark.Record{Do: do, Text: strings.TrimSpace(f.Get("text"))})
	case mark.Name:
		if len(ids) > 1 {
			return nil, nil, page.Bad("a name is of one entry: tick one alone")
		}
		records = append(records, mark.Record{Do: do, Value: value})
	case mark.Issue:
		records = append(records, mark.Record{Do: do, Value: value, Text: strings.TrimSpace(f.Get("text")), Link: strings.TrimSpace(f.Get("link"))})
	case mark.Resolve:
		records = append(records, mark.Record{Do: do, Value: value})
	default:
		return nil, nil, page.Bad("the form says nothing that can be done: do is tag, untag, note, name, pin, unpin, issue or resolve")
	}
	for _, r := range records {
		r.Entry = "-" // whichever: the store writes it
		if err := r.Validate(); err != nil {
			return nil, nil, err
		}
	}
	return records, ids, nil
}

// changing leaves out what would change nothing of an entry.
func changing(e store.Entry, records []mark.Record) []mark.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r mark.Record) bool {
		switch r.Do {
		case mark.Tag:
			return slices.Contains(e.Marks.Tags, r.Value)
		case mark.Untag:
			return !slices.Contains(e.Marks.Tags, r.Value)
		case mark.Pin, mark.Unpin:
			return e.Marks.Pinned == (r.Do == mark.Pin)
		case mark.Note:
			return e.Marks.Note == r.Text
		case mark.Name:
			return e.Marks.Name == r.Value
		case mark.Resolve:
			return !slices.ContainsFunc(e.Marks.Issues, func(k mark.KnownIssue) bool { return k.ID == r.Value })
		}
		return false
	})
}

// storeProblem is what a reader is told of an error of the store.
func storeProblem(err error) error {
	if e, ok := errors.AsType[*store.ReadOnlyError](err); ok {
		return &page.Problem{Status: http.StatusConflict, Text: e.Error(), Hint: "Run perflab as a user who may write there."}
	}
	if e, ok := errors.AsType[*store.InUseError](err); ok {
		return &page.Problem{Status: http.StatusConflict, Text: e.Error()}
	}
	if e, ok := errors.AsType[*store.NotFoundError](err); ok {
		return page.NotFound(e.Error())
	}
	return err
}

// postDelete moves entries into the trash. What was moved can be moved back.
func (s *screen) postDelete(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	all, err := s.entries(r.Context(), ticked(r.PostForm))
	if err != nil {
		return err
	}
	var undo []string
	for _, e := range all {
		removed, err := s.remove(r.Context(), e)
		if err != nil {
			return err
		}
		undo = append(undo, removed.Trash)
	}
	to := back(r.PostForm.Get("back"))
	if u, err := url.Parse(to); err == nil {
		if strings.HasPrefix(u.Path, "/run/") { // its page is gone
			u = &url.URL{Path: "/runs"}
		}
		q := u.Query()
		q["undo"] = undo
		u.RawQuery = q.Encode()
		to = u.String()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// remove moves one entry into the trash, and writes down who did it.
func (s *screen) remove(ctx context.Context, e store.Entry) (store.Removed, error) {
	removed, err := s.o.Store.Remove(ctx, guard.From(ctx).Name, e.ID)
	event := trail.Event{Action: "delete", Object: e.ID, Outcome: trail.Done, Detail: map[string]string{"name": e.Called(), "path": removed.Path, "trash": removed.Trash}}
	if err != nil {
		event.Outcome, event.Reason = trail.Failed, err.Error()
	}
	return removed, errors.Join(storeProblem(err), s.o.Audit(ctx, event))
}

// trashView is what the trash has.
type trashView struct {
	Removed []store.Removed
	May     may
}

// serveTrash shows what was deleted and is still there.
func (s *screen) serveTrash(w http.ResponseWriter, r *http.Request) error {
	all, err := s.o.Store.Trash(r.Context())
	if err != nil {
		return err
	}
	return s.o.Pages.Show(w, r, s.trash, page.View{Title: "Trash", Nav: "runs", Styles: styles, Data: trashView{all, s.may(r)}})
}

// postRestore moves what was deleted back to where it lay.
func (s *screen) postRestore(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	all, err := s.o.Store.Trash(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(x store.Removed) bool {
		return x.Trash == r.PostForm.Get("trash") && x.Root == r.PostForm.Get("root")
	})
	if i < 0 {
		return page.NotFound("this is no longer in the trash: somebody moved it back, or emptied the trash")
	}
	err = s.o.Store.Restore(r.Context(), guard.From(r.Context()).Name, all[i])
	event := trail.Event{Action: "restore", Object: all[i].Entry, Outcome: trail.Done, Detail: map[string]string{"path": all[i].Path, "trash": all[i].Trash}}
	if err != nil {
		event.Outcome, event.Reason = trail.Failed, err.Error()
	}
	if err := errors.Join(storeProblem(err), s.o.Audit(r.Context(), event)); err != nil {
		return err
	}
	http.Redirect(w, r, back(r.PostForm.Get("back")), http.StatusSeeOther)
	return nil
}
