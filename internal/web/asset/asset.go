// Package asset is what the server's pages load: style sheets and small ES modules, inside of the
// program, without a build step and with nothing from elsewhere.
//
//	mux.Handle("GET "+asset.Root, asset.Handler())
//	<link rel="stylesheet" href="{{asset "app.css"}}">   // asset is asset.Path
//	<script type="module" src="{{asset "app.js"}}"></script>
//
// README.md of this directory says which markup does what; the gallery that the tests look at has
// all of it.
//
// Invariants: a path contains the digest of all assets, so it is kept for ever, and modules of two
// versions never meet. Every page can be read without JavaScript: scripts change what the server
// wrote, they never make it. Policy forbids scripts and styles inside of pages, so text of a run can be neither.
//
// Deliberately absent: pages. Their templates are others'.
package asset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/report/doc"
)

// Root is where the assets are served.
const Root = "/assets/"

// Policy is the Content-Security-Policy of every page that uses the assets. The pictures of data and
// blob are those that a plot is exported by.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed files
var embedded embed.FS

// kinds are the media types by ending: a system's own table must not decide whether a module loads.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8",
}

// file is an asset as it is sent.
type file struct {
	kind          string
	plain, packed []byte
}

// set are all assets under the digest of all of them.
type set struct {
	digest string
	files  map[string]file
}

// loaded is the set. What is inside of a program is right or the program is broken: so it panics.
var loaded = sync.OnceValue(func() set {
	s := set{files: map[string]file{}}
	entries, err := fs.ReadDir(embedded, "files")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		b, err := embedded.ReadFile(path.Join("files", e.Name()))
		if err != nil {
			panic(err)
		}
		s.add(e.Name(), b)
	}
	// What reports look like comes first and in a layer of its own, so that every rule of app.css wins over it.
	s.add("report.css", []byte("@layer report {\n"+doc.Style()+"}\n"))
	// uPlot is published as a script; the byte-equal file and one line are a module.
	s.add("uplot.js", append(slices.Clone(s.files["uplot.min.js"].plain), "\nexport default uPlot;\n"...))
	delete(s.files, "uplot.min.js")
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(s.files[name].plain), s.files[name].plain)
	}
	s.digest = hex.EncodeToString(h.Sum(nil))[:16]
	return s
})

func (s *set) add(name string, b []byte) {
	kind := kinds[path.Ext(name)]
	if kind == "" {
		panic("asset " + name + " is of no kind that is served")
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic(err)
	}
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	s.files[name] = file{kind, b, packed.Bytes()}
}

// Path is where an asset is served: Path("app.css") is "/assets/0123456789abcdef/app.css". It
// panics for a name that is no asset: a template that asks for one is broken.
func Path(name string) string {
	s := loaded()
	if _, ok := s.files[name]; !ok {
		panic("there is no asset " + name)
	}
	return Root + s.digest + "/" + name
}

// Names are the names of all assets, sorted.
func Names() []string { return slices.Sorted(maps.Keys(loaded().files)) }

// Handler serves the assets below Root. What is of another version is not found: a page that was opened before an update must not
// run half of each.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := loaded()
		digest, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Root), "/")
		f, ok := s.files[name]
		if !ok || digest != s.digest {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Vary", "Accept-Encoding")
		b := f.plain
		if takesGzip(r) {
			h.Set("Content-Encoding", "gzip")
			b = f.packed
		}
		h.Set("Content-Length", strconv.Itoa(len(b)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(b) // a reader that is gone needs nothing
		}
	})
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" && !strings.HasPrefix(strings.ReplaceAll(weight, " ", ""), "q=0") {
			return true
		}
	}
	return false
}
