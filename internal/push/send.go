package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"perflab/internal/push/manifest"
	"perflab/internal/store/scan"
)

// Paths of the server.
const (
	uploadsPath = "/api/v1/uploads"
	entriesPath = "/api/v1/entries"
)

// push sends one directory.
func (c *client) push(ctx context.Context, l local) (Pushed, error) {
	out := Pushed{Dir: l.dir}
	if why := manifest.Refusal(l.facts); why != "" {
		return out, errors.New(why)
	}
	m, left, err := l.describe(ctx)
	if err != nil {
		return out, err
	}
	out.Left = left
	c.progress(func(p *Progress) { *p = Progress{Name: m.Name, Size: m.Bytes()} })
	for tries := 1; ; tries++ {
		up, err := c.send(ctx, l, m, &out.Bytes)
		if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusUnprocessableEntity && e.anew || e.Status == http.StatusNotFound && up.ID != "") && tries < 3 {
			continue // something was garbled on the way, or another client has just ended the same upload
		}
		if err != nil {
			return out, err
		}
		out.Entry, out.Place = up.Entry, up.Place
		out.There = up.Place == ""
		out.URL = c.base.String() + pageOf(l.facts.Kind) + url.PathEscape(up.Entry)
		return out, nil
	}
}

// pageOf is where the server shows something of a kind.
func pageOf(k scan.Kind) string {
	if k == scan.Study {
		return "/study/"
	}
	return "/run/"
}

// send begins an upload, or goes on with it, and ends it.
func (c *client) send(ctx context.Context, l local, m manifest.Manifest, sent *int64) (up manifest.Upload, err error) {
	b, err := json.Marshal(m)
	if err != nil {
		return up, err
	}
	begin := call{method: http.MethodPost, path: uploadsPath, body: func() io.Reader { return bytes.NewReader(b) }, size: int64(len(b))}
	if err := c.do(ctx, begin, &up); err != nil || up.Entry != "" {
		return up, err
	}
	there := m.Bytes()
	for _, part := range up.Missing {
		if part.File < 0 || part.File >= len(m.Files) || part.Offset < 0 || part.Offset > m.Files[part.File].Size {
			return up, errors.New("the server asks for a file that is not in the manifest")
		}
		there -= m.Files[part.File].Size - part.Offset
	}
	c.progress(func(p *Progress) { p.Bytes = there })
	for _, part := range up.Missing {
		if err := c.sendFile(ctx, l, m.Files[part.File], up, part, sent); err != nil {
			return up, err
		}
	}
	commit := call{method: http.MethodPost, path: uploadsPath + "/" + up.ID + "/commit", body: func() io.Reader { return http.NoBody }}
	return up, c.do(ctx, commit, &up)
}

// mostStuck is how often a server may have no more of a file than before.
const mostStuck = 5

// sendFile sends what is missing of a file, piece by piece.
func (c *client) sendFile(ctx context.Context, l local, f manifest.File, up manifest.Upload, part manifest.Part, sent *int64) error {
	file, err := os.Open(filepath.Join(l.dir, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() != f.Size {
		return fmt.Errorf("%s has changed while it was pushed: push it when nobody writes it", f.Path)
	}
	c.progress(func(p *Progress) { p.File = f.Path })
	stuck := 0
	for at, first := part.Offset, true; at < f.Size || first; first = false {
		next, err := c.sendPiece(ctx, file, f, up, part.File, at)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		if next > at {
			stuck = 0
		} else if stuck++; f.Size > 0 && stuck > mostStuck {
			return fmt.Errorf("%s: the server takes no more of it", f.Path)
		}
		c.progress(func(p *Progress) { p.Bytes += next - at })
		*sent += max(0, next-at)
		at = next
	}
	return nil
}

// sendPiece sends a piece of a file and returns how much of the file is there then. Where the
// server has another amount, because an answer was lost or somebody else pushes the same, it goes on there.
func (c *client) sendPiece(ctx context.Context, file *os.File, f manifest.File, up manifest.Upload, n int, at int64) (next int64, err error) {
	size := min(f.Size-at, max(up.Chunk, 1))
	next = at
	err = c.patiently(ctx, func() (*http.Response, error) {
		resp, err := c.once(ctx, call{
			method: http.MethodPut,
			path:   uploadsPath + "/" + up.ID + "/files/" + strconv.Itoa(n),
			header: map[string]string{manifest.OffsetHeader: strconv.FormatInt(at, 10), "Content-Type": "application/octet-stream"},
			body:   func() io.Reader { return io.NewSectionReader(file, at, size) },
			size:   size,
		})
		if resp == nil {
			if where, asked := c.offset(ctx, up.ID, n); asked == nil && where != at { // a part of it came
				next = where
				return nil, nil
			}
			return nil, err
		}
		defer resp.Body.Close()
		has, bad := strconv.ParseInt(resp.Header.Get(manifest.OffsetHeader), 10, 64)
		if (err == nil || resp.StatusCode == http.StatusConflict) && bad == nil && has >= 0 && has <= f.Size {
			next = has
			return resp, nil
		}
		if err == nil {
			err = errors.New("the server does not say how much of the file it has")
		}
		return resp, err
	})
	return next, err
}

// offset asks how much of a file is there.
func (c *client) offset(ctx context.Context, id string, n int) (int64, error) {
	resp, err := c.once(ctx, call{method: http.MethodHead, path: uploadsPath + "/" + id + "/files/" + strconv.Itoa(n)})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return strconv.ParseInt(resp.Header.Get(manifest.OffsetHeader), 10, 64)
}
