package api

import (
	"net/http"
	"strconv"

	"perflab/internal/redact"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// mostLaunch is the size of a request for a launch.
const mostLaunch = 4 << 20

var launchParameter = page.Parameter{Name: "id", Doc: "The ID of a launch."}

// launching is the part of the API that starts and stops studies and benches.
type launching struct{ *API }

func (a launching) routes() []page.Route {
	state := map[int]string{404: "There is no such launch.", 409: "The launch is in another state, or another server runs the queue."}
	one := []page.Parameter{launchParameter}
	act := func(name, summary string, do func(id, who string) (launch.Launch, error)) page.Route {
		return page.Route{Pattern: "POST /api/v1/launches/{id}/" + name, Role: guard.Launch, Serve: served(a.act(name, do)),
			Doc: page.Doc{Summary: summary, Query: one, Answer: launch.Launch{}, Errors: state}}
	}
	routes := []page.Route{{
		Pattern: "GET /api/v1/launches", Role: guard.Read, Serve: served(a.launchList),
		Doc: page.Doc{Summary: "All launches: those that run, those that wait in their order, then the others, the newest first.", Answer: Launches{}},
	}, {
		Pattern: "POST /api/v1/launches", Role: guard.Launch, Limit: mostLaunch, Serve: served(a.submit),
		Doc: page.Doc{Summary: "Puts a study or a bench at the end of the queue; with check, says only what would be launched.",
			Query: []page.Parameter{{Name: "check", Doc: "true: nothing is launched.", Example: "true"}}, Body: NewLaunch{}, Answer: launch.Launch{},
			Errors: map[int]string{400: "What is asked for is wrong, or not allowed here: the sentence names the line or the value.", 429: "Too many launches wait."}},
	}, {
		Pattern: "GET /api/v1/launches/{id}", Role: guard.Read, Serve: served(a.launch),
		Doc: page.Doc{Summary: "One launch.", Query: one, Answer: launch.Launch{}, Errors: map[int]string{404: "There is no such launch."}},
	}, {
		Pattern: "GET /api/v1/launches/{id}/log", Role: guard.Read, Serve: served(a.log),
		Doc: page.Doc{Summary: "A piece of what a launch wrote, up to 64 KiB.", Answer: launch.Chunk{}, Query: []page.Parameter{launchParameter,
			{Name: "stream", Doc: "stdout, its result, or stderr, what it says as it goes; stderr without it.", Example: "stderr"},
			{Name: "offset", Doc: "Where to begin, in bytes; below 0 from the end; next of the piece before.", Example: "0"}}},
	}}
	if a.o.Queue == nil {
		return routes[:0]
	}
	return append(routes,
		act("stop", "Asks a launch that runs to end: what was measured is kept. Asked again, it ends at once.", a.o.Queue.Stop),
		act("resume", "Lets a study that was stopped, or failed, go on where it was.", a.o.Queue.Resume),
		act("cancel", "Takes a launch out of those that wait.", a.o.Queue.Cancel),
		act("retry", "Puts a launch with what an earlier one asked for at the end of the queue.", a.o.Queue.Retry),
	)
}

// Launches are all of them.
type Launches struct {
	Launches []launch.Launch `json:"launches"`
	ReadOnly string          `json:"read_only,omitempty"` // why this server only shows them
}

// NewLaunch asks for a launch: of a study or of a bench.
type NewLaunch struct {
	Study *NewStudy `json:"study,omitempty"`
	Bench *NewBench `json:"bench,omitempty"`
}

// NewStudy is a study to launch.
type NewStudy struct {
	Text     string `json:"text"`               // of the study file
	Strategy string `json:"strategy,omitempty"` // in place of the file's
}

// NewBench is a run, or a series of runs, to launch.
type NewBench struct {
	Name  string              `json:"name,omitempty"`
	Flags map[string][]string `json:"flags"` // of perflab bench, without dashes
}

func (a launching) launchList(w http.ResponseWriter, _ *http.Request) error {
	out := Launches{Launches: append([]launch.Launch{}, a.o.Queue.List()...)}
	if err := a.o.Queue.ReadOnly(); err != nil {
		out.ReadOnly = err.Error()
	}
	page.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a launching) launch(w http.ResponseWriter, r *http.Request) error {
	l, err := a.o.Queue.Get(r.PathValue("id"))
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, l)
	return nil
}

func (a launching) submit(w http.ResponseWriter, r *http.Request) error {
	var body NewLaunch
	if err := page.ReadJSON(r, &body); err != nil {
		return err
	}
	q := launch.Request{Who: who(r)}
	switch {
	case (body.Study == nil) == (body.Bench == nil):
		return page.Bad("a launch is either of a study or of a bench: give one of them")
	case body.Study != nil:
		q.Study = &launch.StudyRequest{Text: body.Study.Text, Strategy: body.Study.Strategy}
	default:
		q.Bench = &launch.BenchRequest{Name: body.Bench.Name, Flags: body.Bench.Flags}
	}
	check, err := truth(r, "check")
	if err != nil {
		return err
	}
	if check {
		l, err := a.o.Queue.Check(q)
		if err != nil {
			return err
		}
		page.WriteJSON(w, http.StatusOK, l)
		return nil
	}
	l, err := a.o.Queue.Submit(q)
	a.audit(r, "launch", l.ID, err)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/launches/"+l.ID)
	page.WriteJSON(w, http.StatusCreated, l)
	return nil
}

// truth reads true or false of the query.
func truth(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, page.Bad(name + " is true or false, not " + strconv.Quote(text))
	}
	return v, nil
}

// act is a handler that does something with a launch.
func (a launching) act(name string, do func(id, who string) (launch.Launch, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		l, err := do(r.PathValue("id"), who(r))
		a.audit(r, name, r.PathValue("id"), err)
		if err != nil {
			return err
		}
		page.WriteJSON(w, http.StatusOK, l)
		return nil
	}
}

func (a launching) log(w http.ResponseWriter, r *http.Request) error {
	offset, err := number(r, "offset", 0, -1<<40, 1<<50)
	if err != nil {
		return err
	}
	stream := launch.Stderr
	switch s := launch.Stream(r.URL.Query().Get("stream")); s {
	case "", launch.Stderr:
	case launch.Stdout:
		stream = s
	default:
		return page.Bad("stream is stdout or stderr, not " + strconv.Quote(string(s)))
	}
	c, err := a.o.Queue.Tail(r.PathValue("id"), stream, int64(offset))
	if err != nil {
		return err
	}
	c.Text = redact.Shown(c.Text)
	page.WriteJSON(w, http.StatusOK, c)
	return nil
}
