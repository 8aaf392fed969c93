package api

import (
	"net/http"
	"net/url"
	"strings"

	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// Found is something that a search leads to.
type Found struct {
	Title string `json:"title"`
	Kind  string `json:"kind"` // screen, run, series, study, import, site
	Href  string `json:"href"` // below the server
}

// mostFound is how many entries a search gives: as many as an eye takes in.
const mostFound = 12

func (a *API) searchRoute() page.Route {
	return page.Route{
		Pattern: "GET /api/v1/search", Role: guard.Read, Serve: served(a.search),
		Doc: page.Doc{Summary: "What words lead to: screens, and the newest entries that have them.",
			Query: []page.Parameter{{Name: "q", Doc: "Words, or a filter as of a list.", Example: "qwen"}}, Answer: []Found{}},
	}
}

// search answers the command palette. Words that are no filter are no error while somebody types.
func (a *API) search(w http.ResponseWriter, r *http.Request) error {
	words := strings.TrimSpace(r.URL.Query().Get("q"))
	found := []Found{}
	for _, s := range page.Screens() {
		if guard.From(r.Context()).May(s.Role) && strings.Contains(strings.ToLower(s.Title), strings.ToLower(words)) {
			found = append(found, Found{s.Title, "screen", s.Path})
		}
	}
	list, err := a.o.Store.List(r.Context(), store.Query{Filter: words, Limit: mostFound})
	if err != nil && r.Context().Err() != nil {
		return err
	}
	for _, e := range list.Entries { // none where the words are no filter
		found = append(found, Found{e.Called(), string(e.Kind), address(e)})
	}
	page.WriteJSON(w, http.StatusOK, found)
	return nil
}

// address is the page of an entry.
func address(e store.Entry) string {
	switch e.Kind {
	case scan.Study:
		return "/study/" + url.PathEscape(e.ID)
	case scan.Site:
		return "/sites"
	}
	return "/run/" + url.PathEscape(e.ID)
}
