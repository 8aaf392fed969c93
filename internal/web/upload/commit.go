package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"perflab/internal/durable"
	"perflab/internal/push/manifest"
	"perflab/internal/store/scan"
)

// check reads a whole upload and says what it is. Files that are not what the manifest says are emptied, so
// that they come anew.
func (u *Uploads) check(ctx context.Context, id string) (facts scan.Facts, err error) {
	m, err := u.manifest(id)
	if err != nil {
		return facts, err
	}
	if err := u.verify(ctx, id, m); err != nil {
		return facts, err
	}
	tree, err := scan.Open(filepath.Join(u.dir, id, treeDir))
	if err != nil {
		return facts, err
	}
	defer tree.Close()
	places, err := tree.Walk(ctx, time.Now())
	if err != nil {
		return facts, err
	}
	if len(places) == 0 || places[0].Path != "." {
		return facts, &RefusedError{m.Name + " is not taken: it is no run, series, study or import"}
	}
	facts = tree.Read(places[0], nil)
	if why := manifest.Refusal(facts); why != "" {
		return facts, &RefusedError{m.Name + " is not taken: " + why}
	}
	return facts, nil
}

// verify holds every file against its digest.
func (u *Uploads) verify(ctx context.Context, id string, m manifest.Manifest) error {
	root, err := os.OpenRoot(filepath.Join(u.dir, id, treeDir))
	if err != nil {
		return err
	}
	defer root.Close()
	var wrong []string
	for _, f := range m.Files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ok, err := right(root, f)
		if err != nil {
			return err
		}
		if !ok {
			wrong = append(wrong, f.Path)
		}
	}
	if len(wrong) > 0 {
		return &DigestError{wrong}
	}
	return nil
}

// right says whether a file is what it should be; one that is as long and is not is emptied.
func right(root *os.Root, f manifest.File) (bool, error) {
	file, err := root.OpenFile(f.Path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() < f.Size {
		return false, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false, err
	}
	if info.Size() == f.Size && hex.EncodeToString(sum.Sum(nil)) == f.SHA256 {
		return true, nil
	}
	return false, file.Truncate(0)
}

// Commit makes a directory below the root of an upload that is whole and right, and says where it is.
// Where the laboratory has a copy, as is says by the facts, the upload is cleared away and there is no place.
func (u *Uploads) Commit(ctx context.Context, id string, is func(scan.Facts) (there bool, err error)) (place string, facts scan.Facts, err error) {
	if _, err := u.manifest(id); err != nil { // an id is checked before it is made a path of
		return "", facts, err
	}
	release, err := hold(filepath.Join(u.dir, id, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", facts, &NotFoundError{id}
	}
	if err != nil {
		return "", facts, err
	}
	defer release()
	if facts, err = u.check(ctx, id); err != nil {
		return "", facts, err
	}
	there, err := is(facts)
	if err != nil {
		return "", facts, err
	}
	if !there {
		m, err := u.manifest(id)
		if err != nil {
			return "", facts, err
		}
		if place, err = u.publish(filepath.Join(u.dir, id, treeDir), m.Name); err != nil {
			return "", facts, fmt.Errorf("keep what was pushed: %w", err)
		}
		u.done.Add(1)
	}
	release()                                  // some systems remove nothing that is open
	_ = os.RemoveAll(filepath.Join(u.dir, id)) // what another begins in it just now goes with its time
	return place, facts, nil
}

// publish gives a directory its name, or that with a number where it is taken.
func (u *Uploads) publish(tree, name string) (string, error) {
	for n := 1; n < 10_000; n++ {
		at := name
		if n > 1 {
			at = fmt.Sprintf("%s-%d", name, n)
		}
		to := filepath.Join(u.o.Root, at)
		if _, err := os.Lstat(to); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		switch err := durable.Publish(tree, to); {
		case err == nil:
			return at, nil
		case !errors.Is(err, fs.ErrExist): // else another was faster
			return "", err
		}
	}
	return "", fmt.Errorf("%s has too many directories called %s", u.o.Root, name)
}
