package runs

import (
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"perflab/internal/store"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/page"
)

// fileView is a file of a directory.
type fileView struct {
	Name string
	URL  string
	Size int64
}

// mostFiles is how many files a page lists.
const mostFiles = 300

// filesOf are the files of an entry's directory; more says that there are further ones. What lies in
// parts of it, such as the runs of a series, is on their own pages.
func filesOf(e store.Entry, dir string, parts []store.Entry) (out []fileView, more bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is not listed
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(path.Base(name), ".") || isPart(e, name, parts)) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || place.Check(name) != nil {
			return nil
		}
		if len(out) == mostFiles {
			more = true
			return fs.SkipAll
		}
		out = append(out, fileView{Name: name, URL: "/run/" + e.ID + "/files/" + escapePath(name), Size: info.Size()})
		return nil
	})
	return out, more, err
}

// isPart reports whether something below the directory of an entry is an entry of its own.
func isPart(e store.Entry, name string, parts []store.Entry) bool {
	if len(e.Places) == 0 {
		return false
	}
	return slices.ContainsFunc(parts, func(p store.Entry) bool {
		return slices.ContainsFunc(p.Places, func(at store.Place) bool {
			return at.Root == e.Places[0].Root && at.Path == path.Join(e.Places[0].Path, name)
		})
	})
}

func escapePath(name string) string {
	return strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23", " ", "%20", `"`, "%22").Replace(name)
}

// serveFile gives a file of an entry's directory.
func (s *screen) serveFile(w http.ResponseWriter, r *http.Request) error {
	e, err := s.entry(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	dir := e.Dir()
	if dir == "" {
		return page.NotFound("the files of " + e.Called() + " lie on another machine")
	}
	p, err := place.Open(dir)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Serve(w, r, r.PathValue("path"))
	return nil
}
