package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"perflab/internal/push/manifest"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
	"perflab/internal/web/upload"
)

// uploading is the part of the API that takes directories.
type uploading struct{ *API }

func (a uploading) routes() []page.Route {
	id := page.Parameter{Name: "id", Doc: "The ID of an upload."}
	n := page.Parameter{Name: "n", Doc: "The file's place in the manifest, from 0.", Example: "0"}
	gone := map[int]string{404: "There is no such upload: begin it again."}
	piece := map[int]string{404: gone[404], 409: "The piece does not follow what is there: go on at Upload-Offset.", 411: "The length is not said.", 413: "The piece is too long.",
		422: "The file would be longer than the manifest says.", 423: "Another client sends this file just now.", 507: "The disk would have less free than its reserve."}
	return []page.Route{{
		Pattern: "POST /api/v1/uploads", Role: guard.Launch, Limit: manifest.MostLength, Serve: served(a.begin),
		Doc: page.Doc{Summary: "Begins the upload of a directory, or says how far it has come. Where entry is set, the laboratory has it, and nothing is to be sent.",
			Body: manifest.Manifest{}, Answer: manifest.Upload{}, Errors: map[int]string{422: "Too many uploads are under way.", 507: piece[507]}},
	}, {
		Pattern: "GET /api/v1/uploads/{id}", Role: guard.Launch, Serve: served(a.standing),
		Doc: page.Doc{Summary: "How far an upload has come.", Query: []page.Parameter{id}, Answer: manifest.Upload{}, Errors: gone},
	}, {
		Pattern: "DELETE /api/v1/uploads/{id}", Role: guard.Launch, Serve: served(a.giveUp),
		Doc: page.Doc{Summary: "Gives an upload up: what came of it is removed.", Query: []page.Parameter{id}, Errors: gone},
	}, {
		Pattern: "HEAD /api/v1/uploads/{id}/files/{n}", Role: guard.Launch, Serve: served(a.offset),
		Doc: page.Doc{Summary: "How much of a file is there, in the header Upload-Offset.", Query: []page.Parameter{id, n}, Errors: gone},
	}, {
		Pattern: "PUT /api/v1/uploads/{id}/files/{n}", Role: guard.Launch, Limit: upload.Chunk, Serve: served(a.piece),
		Doc: page.Doc{Summary: "Adds a piece to a file. The answer has how much is there in the header Upload-Offset, also where the piece is refused.",
			Query:  []page.Parameter{id, n, {Name: manifest.OffsetHeader, Header: true, Doc: "Where the piece begins, in bytes: what is there already. 0 without it.", Example: "0"}},
			Media:  "application/octet-stream",
			Errors: piece},
	}, {
		Pattern: "POST /api/v1/uploads/{id}/commit", Role: guard.Launch, Serve: served(a.commit),
		Doc: page.Doc{Summary: "Holds every file against its digest, and makes a directory of the upload, which is an entry then.", Query: []page.Parameter{id}, Answer: manifest.Upload{},
			Errors: map[int]string{404: gone[404], 422: "Files are not what the manifest says (with the header Upload-Again), or the directory is not one that is taken: no run, or one that has not ended.", 423: "Somebody else commits it just now."}},
	}}
}

// there is the entry of an ID, and not of what begins like it.
func (a uploading) there(ctx context.Context, id string) (string, bool) {
	if id == "" {
		return "", false
	}
	e, err := a.o.Store.Get(ctx, id)
	if err != nil || e.ID != id || manifest.Refusal(e.Facts) != "" {
		return "", false
	}
	return e.ID, true
}

func (a uploading) begin(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	m, err := manifest.Parse(b)
	if err != nil {
		return page.Bad(err.Error())
	}
	if id, ok := a.there(r.Context(), m.Entry); ok {
		if err := a.uploads.Drop(m.ID()); err != nil && !is[*upload.NotFoundError](err) { // a server was killed when it had just ended it
			return err
		}
		page.WriteJSON(w, http.StatusOK, manifest.Upload{ID: m.ID(), Entry: id, Missing: []manifest.Part{}, Chunk: upload.Chunk})
		return nil
	}
	up, err := a.uploads.Begin(m)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/uploads/"+up.ID)
	page.WriteJSON(w, http.StatusOK, up)
	return nil
}

func (a uploading) standing(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	up, err := a.uploads.Standing(r.PathValue("id"))
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, up)
	return nil
}

func (a uploading) giveUp(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	if err := a.uploads.Drop(r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// file reads which file is meant.
func file(r *http.Request) (int, error) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return 0, page.NotFound(fmt.Sprintf("files have numbers from 0, and %q is none", r.PathValue("n")))
	}
	return n, nil
}

func (a uploading) offset(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	n, err := file(r)
	if err != nil {
		return err
	}
	has, err := a.uploads.Offset(r.PathValue("id"), n)
	if err != nil {
		return err
	}
	w.Header().Set(manifest.OffsetHeader, strconv.FormatInt(has, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a uploading) piece(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	n, err := file(r)
	if err != nil {
		return err
	}
	if r.ContentLength < 0 {
		return &page.Problem{Status: http.StatusLengthRequired, Text: "the length of the piece is not said: give Content-Length"}
	}
	offset := int64(0)
	if text := r.Header.Get(manifest.OffsetHeader); text != "" {
		if offset, err = strconv.ParseInt(text, 10, 64); err != nil || offset < 0 {
			return page.Bad(manifest.OffsetHeader + " is a number of bytes, not " + strconv.Quote(text))
		}
	}
	has, err := a.uploads.Write(r.PathValue("id"), n, offset, r.ContentLength, r.Body)
	if !is[*upload.NotFoundError](err) {
		w.Header().Set(manifest.OffsetHeader, strconv.FormatInt(has, 10))
	}
	switch {
	case is[*upload.OffsetError](err):
		return &page.Problem{Status: http.StatusConflict, Text: err.Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return page.Bad("the piece was cut off: what came of it is kept")
	case err != nil:
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a uploading) commit(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	ctx := r.Context()
	// From the question whether it is there until the index has it, no other becomes an entry:
	// of two that push the same at once the second would find nothing yet.
	release := func() {}
	defer func() { release() }()
	at, facts, err := a.uploads.Commit(ctx, r.PathValue("id"), func(f scan.Facts) (bool, error) {
		a.arriving.Lock()
		release = a.arriving.Unlock
		_, ok := a.there(ctx, f.ID)
		return ok, nil
	})
	if is[*upload.DigestError](err) {
		w.Header().Set(manifest.AgainHeader, "1")
	}
	if !is[*upload.NotFoundError](err) {
		a.audit(r, "push", facts.ID, err)
	}
	if err != nil {
		return err
	}
	// Whoever pushed may have gone: it asks again, and is to find what is there by now.
	if _, err := a.o.Store.Sync(context.WithoutCancel(ctx)); err != nil {
		a.o.Log.Error("what was pushed is not in the index yet", "error", err)
	}
	page.WriteJSON(w, http.StatusOK, manifest.Upload{ID: r.PathValue("id"), Entry: facts.ID, Place: at, Missing: []manifest.Part{}, Chunk: upload.Chunk})
	return nil
}
