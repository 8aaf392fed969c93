package page

import (
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"perflab/internal/field"
	"perflab/internal/redact"
	"perflab/internal/web/guard"
)

//go:embed *.html
var frames embed.FS

// Route is an address and who may use it.
type Route struct {
	Pattern string // of http.ServeMux, with its method
	Role    guard.Role
	Open    bool  // needs no role
	Shared  bool  // share links lead to it too: it asks Who.Sees before it shows something
	Limit   int64 // the most bytes of a body; 0: what guard allows
	Stream  bool  // a stream of events, which no timeout ends
	Serve   func(w http.ResponseWriter, r *http.Request) error
	Doc     Doc // of the API; zero for pages
}

// Doc describes a route of the API: the OpenAPI document is made of it.
type Doc struct {
	Summary string         // one sentence; "": not of the API
	Query   []Parameter    // of the address
	Body    any            // a value of the type that it takes; nil: none
	Media   string         // of the body; "": JSON
	Answer  any            // a value of the type that it gives; nil: none
	Answers string         // the media type of the answer; "": JSON
	Errors  map[int]string // what goes wrong, beside what always may
}

// Parameter is one of an address: of its query, a header, or in braces in the pattern.
type Parameter struct {
	Name, Doc string
	Header    bool
	Example   string
}

// Problem is an error that a reader of a page is told: with its status, and what to do.
type Problem struct {
	Status int    `json:"status"`
	Text   string `json:"error"`
	Hint   string `json:"hint,omitempty"`
}

func (p *Problem) Error() string { return p.Text }

// NotFound is the problem of what is not there.
func NotFound(text string) *Problem { return &Problem{Status: http.StatusNotFound, Text: text} }

// Bad is the problem of a request that cannot be served as it is.
func Bad(text string) *Problem { return &Problem{Status: http.StatusBadRequest, Text: text} }

// ProblemOf is what a reader is told of an error. One that is nobody's business is an inner one.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Text: "what was sent is larger than this address takes"}
	}
	if e, ok := errors.AsType[*field.Error](err); ok {
		return &Problem{Status: http.StatusBadRequest, Text: e.Error()}
	}
	if u, ok := errors.AsType[interface {
		error
		Unavailable() bool
		Hint() string
	}](err); ok && u.Unavailable() {
		return &Problem{Status: http.StatusServiceUnavailable, Text: err.Error(), Hint: u.Hint()}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &Problem{Status: http.StatusNotFound, Text: err.Error(), Hint: "It may have been moved or deleted a moment ago: look at the list again."}
	}
	return &Problem{Status: http.StatusInternalServerError, Text: err.Error()}
}

// Handler serves a route: an error becomes a page, or JSON below /api/.
func (p *Pages) Handler(r Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		err := r.Serve(w, q)
		if err == nil || q.Context().Err() != nil {
			return
		}
		p.Fail(w, q, err)
	})
}

// Fail shows an error.
func (p *Pages) Fail(w http.ResponseWriter, r *http.Request, err error) {
	problem := ProblemOf(err)
	if problem.Status >= http.StatusInternalServerError {
		slog.Error("a page failed", "path", r.URL.Path, "error", redact.Shown(err.Error()))
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		WriteJSON(w, problem.Status, problem)
		return
	}
	view := View{Title: http.StatusText(problem.Status), Data: struct{ Head, Text, Hint string }{http.StatusText(problem.Status), problem.Text, problem.Hint}}
	if err := p.ShowStatus(w, r, problem.Status, p.problem, view); err != nil {
		http.Error(w, problem.Text, problem.Status)
	}
}

// WriteJSON writes an answer of the API.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that left needs no answer
}

// ReadJSON reads the body of a request of the API. A key that is not known is an error.
func ReadJSON(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return err
		}
		return Bad("the body is not the JSON that this address takes: " + err.Error())
	}
	return nil
}
