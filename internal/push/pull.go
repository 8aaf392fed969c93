package push

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"perflab/internal/durable"
	"perflab/internal/push/manifest"
	"perflab/internal/redact"
	"perflab/internal/store/scan"
)

// listed is what is needed of an entry in a list.
type listed struct {
	ID     string `json:"id"`
	Parent string `json:"parent"`
}

// Pull fetches entries into a directory: one by its ID, the beginning of it or its name, or all for which a
// filter holds, as perflab list has them. Of a study that comes, the runs do not come once more beside it.
func Pull(ctx context.Context, o Options, what, out string, told func(Progress)) ([]Pulled, error) {
	c, err := newClient(o, told)
	if err != nil {
		return nil, err
	}
	defer c.close()
	ids, err := c.which(ctx, what)
	if err != nil {
		return nil, err
	}
	var done []Pulled
	var errs []error
	for _, id := range ids {
		p, err := c.pull(ctx, id, out)
		if err != nil {
			errs = append(errs, fmt.Errorf("pull %s: %w", id, err))
		} else {
			done = append(done, p)
		}
		if ends(ctx, err) {
			break
		}
	}
	return done, errors.Join(errs...)
}

// which finds the IDs that are meant.
func (c *client) which(ctx context.Context, what string) ([]string, error) {
	var one listed
	err := c.do(ctx, call{method: http.MethodGet, path: entriesPath + "/" + url.PathEscape(what)}, &one)
	if err == nil {
		return []string{one.ID}, nil
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusNotFound {
		return nil, err
	}
	var all []listed
	for offset := 0; ; {
		var page struct {
			Entries []listed `json:"entries"`
			Total   int      `json:"total"`
		}
		q := url.Values{"q": {what}, "sort": {"started"}, "limit": {"500"}, "offset": {strconv.Itoa(offset)}}
		if err := c.do(ctx, call{method: http.MethodGet, path: entriesPath, query: q}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Entries...)
		if offset += len(page.Entries); len(page.Entries) == 0 || offset >= page.Total {
			break
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the laboratory has nothing for %q: give an ID, a name or a filter such as engine=vllm", what)
	}
	return outermost(all), nil
}

// outermost leaves out what comes as a part of something else that comes.
func outermost(all []listed) (ids []string) {
	have, seen := map[string]bool{}, map[string]bool{}
	for _, e := range all {
		have[e.ID] = true
	}
	for _, e := range all {
		if !have[e.Parent] && !seen[e.ID] {
			seen[e.ID] = true
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// pull fetches one entry.
func (c *client) pull(ctx context.Context, id, out string) (Pulled, error) {
	var l manifest.Files
	files := entriesPath + "/" + url.PathEscape(id) + "/files"
	if err := c.do(ctx, call{method: http.MethodGet, path: files, query: url.Values{"digest": {"true"}}}, &l); err != nil {
		return Pulled{}, err
	}
	m := manifest.Manifest{Schema: manifest.Schema, Name: l.Name, Files: l.Files}
	if err := m.Validate(); err != nil {
		return Pulled{}, fmt.Errorf("what the server has cannot be kept here: %w", err)
	}
	dir, there, err := target(out, l)
	if err != nil || there {
		return Pulled{Entry: id, Dir: dir, There: there}, err
	}
	c.progress(func(p *Progress) { *p = Progress{Name: l.Name, Size: m.Bytes()} })
	done := Pulled{Entry: id, Dir: dir}
	// The name is of the entry, so that what was cut off goes on; it is hidden, so that nobody takes it
	// for a run.
	tmp := filepath.Join(out, ".pulling-"+l.Entry)
	if err := durable.MkdirAll(tmp); err != nil {
		return done, err
	}
	err = c.fetchAll(ctx, tmp, files, m, &done.Bytes)
	if err == nil {
		err = durable.Publish(tmp, dir)
	}
	return done, err
}

// target is the directory that an entry gets, and whether it is there already.
func target(out string, l manifest.Files) (dir string, there bool, err error) {
	for _, name := range []string{l.Name, l.Name + "-" + l.Entry[:min(8, len(l.Entry))]} {
		dir = filepath.Join(out, name)
		_, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return dir, false, nil
		}
		if err != nil {
			return "", false, err
		}
		if idOf(dir) == l.Entry {
			return dir, true, nil
		}
	}
	return "", false, fmt.Errorf("%s holds something else: give another directory by --out", dir)
}

// idOf is the ID of what a directory holds, "" for nothing.
func idOf(dir string) string {
	tree, err := scan.Open(dir)
	if err != nil {
		return ""
	}
	defer tree.Close()
	places, err := tree.Walk(context.Background(), time.Now())
	if err != nil || len(places) == 0 || places[0].Path != "." {
		return ""
	}
	return tree.Read(places[0], nil).ID
}

// fetchAll fetches the files of a manifest into a directory that nobody else fetches into.
func (c *client) fetchAll(ctx context.Context, tmp, from string, m manifest.Manifest, came *int64) error {
	lock, err := os.Open(tmp)
	if err != nil {
		return err
	}
	defer lock.Close()
	if ok, err := durable.Hold(lock); err == nil && !ok {
		return fmt.Errorf("another process fetches it into %s just now", filepath.Dir(tmp))
	}
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range m.Files {
		c.progress(func(p *Progress) { p.File = f.Path })
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return err
		}
		if err := c.fetch(ctx, root, from, f, came); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return nil
}

// fetch fetches a file, and what is wrong once more.
func (c *client) fetch(ctx context.Context, root *os.Root, from string, f manifest.File, came *int64) error {
	file, err := root.OpenFile(f.Path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	for range 2 {
		if err := c.fetchRest(ctx, file, from, f, came); err != nil {
			return err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(file, 0, f.Size)); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) == f.SHA256 {
			return file.Close()
		}
		if err := file.Truncate(0); err != nil {
			return err
		}
		c.progress(func(p *Progress) { p.Bytes -= f.Size })
	}
	return errors.New("what came is not what the server said would come: the file is being changed there, or something between alters it")
}

// fetchRest fetches what a file lacks.
func (c *client) fetchRest(ctx context.Context, file *os.File, from string, f manifest.File, came *int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	at := info.Size()
	if at > f.Size {
		at = 0
		if err := file.Truncate(0); err != nil {
			return err
		}
	}
	c.progress(func(p *Progress) { p.Bytes += at })
	for at < f.Size {
		before := at
		err := c.patiently(ctx, func() (*http.Response, error) { return c.fetchPiece(ctx, file, from, f, &at) })
		c.progress(func(p *Progress) { p.Bytes += at - before })
		*came += at - before
		if err != nil && at == before {
			return err
		}
	}
	return nil
}

// fetchPiece fetches from an offset on, as far as the connection lasts.
func (c *client) fetchPiece(ctx context.Context, file *os.File, from string, f manifest.File, at *int64) (*http.Response, error) {
	k := call{method: http.MethodGet, path: from + "/" + escapePath(f.Path), header: map[string]string{}}
	if *at > 0 {
		k.header["Range"] = fmt.Sprintf("bytes=%d-", *at)
	}
	resp, err := c.once(ctx, k)
	if err != nil {
		return resp, err
	}
	defer resp.Body.Close()
	if *at > 0 && resp.StatusCode != http.StatusPartialContent {
		return resp, &localError{errors.New("the server, or something before it, gives no parts of files")}
	}
	w := io.NewOffsetWriter(file, *at)
	n, err := io.Copy(w, io.LimitReader(resp.Body, f.Size-*at))
	*at += n
	if n > 0 {
		return nil, nil // headway: what is left is asked for anew
	}
	return nil, cmp.Or(err, io.ErrUnexpectedEOF)
}

// escapePath escapes the parts of a path.
func escapePath(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// String says how far it is.
func (p Progress) String() string {
	switch {
	case p.Waiting != "":
		return p.Name + ": waiting: " + redact.Shown(p.Waiting)
	case p.Size > 0:
		return fmt.Sprintf("%s: %d of %d bytes (%d %%)", p.Name, p.Bytes, p.Size, 100*p.Bytes/p.Size)
	}
	return p.Name
}
