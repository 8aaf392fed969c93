package api

import (
	"net/http"

	"perflab/internal/store/mark"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

func (a *API) markRoutes() []page.Route {
	return []page.Route{{
		Pattern: "GET /api/v1/entries/{id}/marks", Role: guard.Read, Serve: served(a.marks),
		Doc: page.Doc{Summary: "What people say of an entry, and all that they ever said.", Query: []page.Parameter{idParameter}, Answer: Marks{}},
	}, {
		Pattern: "POST /api/v1/entries/{id}/marks", Role: guard.Launch, Serve: served(a.mark),
		Doc: page.Doc{Summary: "Adds tags, a note, a name, a pin or known issues to an entry, or takes them away.", Query: []page.Parameter{idParameter},
			Body: NewMarks{}, Answer: Marks{}, Errors: map[int]string{409: "The root cannot be written to."}},
	}}
}

// Marks are what is said of an entry.
type Marks struct {
	Entry   string        `json:"entry"`
	Marks   mark.Marks    `json:"marks"`
	History []mark.Record `json:"history"` // in the order in which it was said
}

// NewMarks is what somebody wants to say.
type NewMarks struct {
	Marks []NewMark `json:"marks"`
}

// NewMark is one of them.
type NewMark struct {
	Do    mark.Act `json:"do"`              // tag, untag, note, name, pin, unpin, issue, resolve
	Value string   `json:"value,omitempty"` // the tag, the name, the ID of the issue
	Text  string   `json:"text,omitempty"`  // of a note or an issue
	Link  string   `json:"link,omitempty"`  // of an issue
}

func (a *API) marks(w http.ResponseWriter, r *http.Request) error {
	return a.showMarks(w, r, r.PathValue("id"))
}

func (a *API) showMarks(w http.ResponseWriter, r *http.Request, id string) error {
	e, err := a.o.Store.Get(r.Context(), id)
	if err != nil {
		return err
	}
	all, err := a.o.Store.History(r.Context(), e.ID)
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, Marks{e.ID, e.Marks, append([]mark.Record{}, all...)})
	return nil
}

func (a *API) mark(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	var body NewMarks
	if err := page.ReadJSON(r, &body); err != nil {
		return err
	}
	if n := len(body.Marks); n == 0 || n > 100 {
		return page.Bad("marks has 1 to 100 of them")
	}
	var records []mark.Record
	for _, m := range body.Marks {
		if m.Do == mark.Remove || m.Do == mark.Restore {
			return page.Bad("an entry is removed by DELETE, and restored by POST /api/v1/trash/restore")
		}
		records = append(records, mark.Record{Do: m.Do, Value: m.Value, Text: m.Text, Link: m.Link})
	}
	e, err := a.o.Store.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	err = a.o.Store.Mark(r.Context(), who(r), e.ID, records...)
	a.audit(r, "mark", e.ID, err)
	if err != nil {
		return err
	}
	return a.showMarks(w, r, e.ID)
}
