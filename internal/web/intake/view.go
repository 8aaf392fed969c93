package intake

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/input"
	"perflab/internal/report/doc"
	"perflab/internal/site"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/page"
)

// mostPage is the largest file of a site that is looked at.
const mostPage = 64 << 20

// searchIndex is the file of a site that its pages load.
const searchIndex = "search.js"

// view shows a file of a site. Its pages are of this server's origin, since a session's cookie goes with
// no other, and so they run perflab's own scripts alone, known by their hashes: a site may have been
// pushed by anybody.
func (s *screen) view(w http.ResponseWriter, r *http.Request) error {
	p, err := s.siteOf(r.Context(), r.PathValue("key"))
	if err != nil {
		return err
	}
	name := r.PathValue("path")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	b, err := p.read(name)
	if place.Gone(err) {
		return page.NotFound("this site has no page " + r.PathValue("path"))
	}
	if err != nil {
		return err
	}
	h := w.Header()
	place.Harmless(h, name)
	switch {
	case path.Ext(name) == ".html":
		h.Del("Content-Disposition")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy(r.Host, p.Key))
	case name == searchIndex:
		if !isIndex(b) {
			return page.NotFound("the search of this site is none that perflab wrote")
		}
		h.Del("Content-Disposition")
		h.Set("Content-Type", "text/javascript; charset=utf-8")
	}
	_, _ = w.Write(b) // who asked may have gone
	return nil
}

// policy lets pages of a site run perflab's scripts and load the index of the search.
func policy(host, key string) string {
	return "sandbox allow-scripts allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src " +
		hash(doc.Script()) + " " + hash(doc.SearchScript()) + " " + host + "/sites/view/" + key + "/" + searchIndex +
		"; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

func hash(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// isIndex reports whether a script is an index as perflab writes it: rows of texts, and nothing that runs.
func isIndex(b []byte) bool {
	rows, ok := bytes.CutPrefix(b, []byte("window.perflabIndex="))
	rows, end := bytes.CutSuffix(rows, []byte(";\n"))
	var texts [][3]string
	d := json.NewDecoder(bytes.NewReader(rows))
	return ok && end && d.Decode(&texts) == nil && !d.More()
}

// manifest are the files of a site, by its own list and in it.
func (p published) manifest() ([]string, error) {
	b, err := input.File(filepath.Join(p.dir, site.Manifest), mostPage)
	if err != nil {
		return nil, fmt.Errorf("read the list of the site's files: %w", err)
	}
	names, err := site.ReadManifest(b)
	return append(slices.Clone(names), site.Manifest), err
}

// read reads a file that the site's list has.
func (p published) read(name string) ([]byte, error) {
	names, err := p.manifest()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, fs.ErrNotExist
	}
	root, err := place.Open(p.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := root.File(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return input.All(f, name, mostPage)
}

// download sends a whole site as one file.
func (s *screen) download(w http.ResponseWriter, r *http.Request) error {
	p, err := s.siteOf(r.Context(), r.PathValue("key"))
	if err != nil {
		return err
	}
	names, err := p.manifest()
	if err != nil {
		return err
	}
	root, err := place.Open(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var to packer
	kind := r.URL.Query().Get("as")
	h := w.Header()
	switch kind {
	case "zip":
		h.Set("Content-Type", "application/zip")
		to = &zipped{zip.NewWriter(w)}
	case "tar.gz", "":
		kind = "tar.gz"
		h.Set("Content-Type", "application/gzip")
		z := gzip.NewWriter(w)
		to = &tarred{tar.NewWriter(z), z}
	default:
		return page.Bad("a site comes as zip or as tar.gz")
	}
	h.Set("Content-Disposition", place.Disposition(p.Name+"."+kind))
	for _, name := range names {
		if err := p.pack(root, name, to); err != nil {
			panic(http.ErrAbortHandler) // a file that ends before its end must not look whole
		}
	}
	if to.Close() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// packer puts files together.
type packer interface {
	add(name string, info fs.FileInfo) (io.Writer, error)
	Close() error
}

func (p published) pack(root *place.Place, name string, to packer) error {
	f, info, err := root.File(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := to.add(p.Name+"/"+name, info)
	if err == nil {
		_, err = io.CopyN(w, f, info.Size())
	}
	return err
}

type zipped struct{ w *zip.Writer }

func (z *zipped) add(name string, info fs.FileInfo) (io.Writer, error) {
	return z.w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: info.ModTime()})
}

func (z *zipped) Close() error { return z.w.Close() }

type tarred struct {
	w *tar.Writer
	z *gzip.Writer
}

func (t *tarred) add(name string, info fs.FileInfo) (io.Writer, error) {
	return t.w, t.w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: info.ModTime(), Typeflag: tar.TypeReg})
}

func (t *tarred) Close() error { return errors.Join(t.w.Close(), t.z.Close()) }
