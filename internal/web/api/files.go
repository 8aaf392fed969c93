package api

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"perflab/internal/push/manifest"
	"perflab/internal/store"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/page"
)

func (a *API) fileRoutes() []page.Route {
	there := map[int]string{409: "It lies on another machine, or has not ended."}
	return []page.Route{{
		Pattern: "GET /api/v1/entries/{id}/files", Role: guard.Read, Serve: served(a.files),
		Doc: page.Doc{Summary: "The files of an entry, with their digests where they are asked for.", Answer: manifest.Files{}, Errors: there,
			Query: []page.Parameter{idParameter, {Name: "digest", Doc: "true: with the SHA-256 of each file, of an entry that has ended.", Example: "true"}}},
	}, {
		Pattern: "GET /api/v1/entries/{id}/files/{path...}", Role: guard.Read, Serve: served(a.sendFile),
		Doc: page.Doc{Summary: "A file of an entry, or a range of it.", Answers: "application/octet-stream", Errors: there,
			Query: []page.Parameter{idParameter, {Name: "path", Doc: "Its path below the directory of the entry."}, {Name: "Range", Header: true, Doc: "bytes=FROM- to go on with one that was cut off."}}},
	}, {
		Pattern: "GET /api/v1/entries/{id}/tar", Role: guard.Read, Serve: served(a.tar),
		Doc: page.Doc{Summary: "All files of an entry that has ended, as a tar archive.", Query: []page.Parameter{idParameter}, Answers: "application/x-tar", Errors: there},
	}}
}

// whole finds an entry on this machine that nobody writes.
func (a *API) whole(ctx context.Context, what string) (store.Entry, error) {
	e, err := a.here(ctx, what)
	if err != nil {
		return e, err
	}
	if why := manifest.Refusal(e.Facts); why != "" {
		return e, &page.Problem{Status: http.StatusConflict, Text: e.Called() + " is not given out: " + why}
	}
	return e, nil
}

// each calls do with the regular files of an entry, in the order of their names. What is hidden and what is
// a link is passed.
func each(ctx context.Context, dir string, do func(root *os.Root, name string, info fs.FileInfo) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return do(root, name, info)
	})
}

// nameOf is what a copy of an entry is called.
func nameOf(e store.Entry) string {
	if name := filepath.Base(e.Dir()); manifest.CheckName(name) == nil {
		return name
	}
	return string(e.Kind) + "-" + e.ID[:min(8, len(e.ID))]
}

func (a *API) files(w http.ResponseWriter, r *http.Request) error {
	digest, err := truth(r, "digest")
	if err != nil {
		return err
	}
	find := a.here
	if digest {
		find = a.whole
	}
	e, err := find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	out := manifest.Files{Entry: e.ID, Name: nameOf(e), Files: []manifest.File{}}
	list := func() error {
		return each(r.Context(), e.Dir(), func(root *os.Root, name string, info fs.FileInfo) error {
			f := manifest.File{Path: name, Size: info.Size()}
			if digest {
				if f.SHA256, err = digestOf(root, name); err != nil {
					return err
				}
			}
			out.Files = append(out.Files, f)
			out.Bytes += f.Size
			return nil
		})
	}
	if digest {
		err = a.heavily(r.Context(), list)
	} else {
		err = list()
	}
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, out)
	return nil
}

func digestOf(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

func (a *API) sendFile(w http.ResponseWriter, r *http.Request) error {
	e, err := a.here(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	p, err := place.Open(e.Dir())
	if err != nil {
		return err
	}
	defer p.Close()
	name := r.PathValue("path")
	f, info, err := p.File(name)
	if err != nil || place.CheckPortable(name) != nil {
		if f != nil {
			f.Close()
		}
		return page.NotFound("there is no such file")
	}
	defer f.Close()
	place.Harmless(w.Header(), name)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

func (a *API) tar(w http.ResponseWriter, r *http.Request) error {
	e, err := a.whole(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	name := nameOf(e)
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Disposition", place.Disposition(name+".tar"))
	out := tar.NewWriter(w)
	err = each(r.Context(), e.Dir(), func(root *os.Root, file string, info fs.FileInfo) error {
		return pack(out, root, path.Join(name, file), file, info)
	})
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		a.o.Log.Error("an archive was cut off", "entry", e.ID, "error", err)
		panic(http.ErrAbortHandler) // the client sees that it is not whole
	}
	return nil
}

func pack(out *tar.Writer, root *os.Root, as, name string, info fs.FileInfo) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := &tar.Header{Typeflag: tar.TypeReg, Name: as, Size: info.Size(), Mode: 0o644, ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}
