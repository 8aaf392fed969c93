package studies_test

import (
	"net/http/httptest"
	"testing"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

// BenchmarkList is the first page of a list of 1,000 studies.
func BenchmarkList(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		storetest.Study(b, root, "studies/"+storetest.StudyOf(i).Name, i, 0)
	}
	serve(b, webtest.Open(b, web.Options{Roots: []string{root}}), "/studies")
}

// BenchmarkStudy is the page of a study as it runs.
func BenchmarkStudy(b *testing.B) {
	root := b.TempDir()
	x := race(b, root, "")
	lab := webtest.Open(b, web.Options{Roots: []string{root}})
	e, err := lab.Store().Get(b.Context(), x.dir)
	if err != nil {
		b.Fatal(err)
	}
	serve(b, lab, "/study/"+e.ID)
}

// serve asks for a page again and again.
func serve(b *testing.B, lab *webtest.Lab, path string) {
	for b.Loop() {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", lab.URL+path, nil)
		r.RemoteAddr = "127.0.0.1:9"
		lab.Handler().ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Code, w.Body)
		}
	}
}
