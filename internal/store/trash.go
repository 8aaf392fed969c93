package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/store/mark"
)

// Removed is a directory that was moved into a trash, where it stays until somebody empties that.
type Removed struct {
	Root  string `json:"root"`
	Path  string `json:"path"`  // where it lay below the root
	Trash string `json:"trash"` // its name in the trash
	Entry string `json:"entry"`
}

// Dir is where it is now.
func (r Removed) Dir() string { return filepath.Join(r.Root, Folder, trashDir, r.Trash) }

// InUseError says that something goes on in a directory.
type InUseError struct{ Name string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s goes on: stop it first", e.Name)
}

// Remove moves the directory of an entry into the trash of its root, with all that lies in it. Where it
// lies in several places only the first is moved. What goes on is refused.
func (s *Store) Remove(ctx context.Context, who, id string) (Removed, error) {
	e, err := s.Get(ctx, id)
	if err != nil {
		return Removed{}, err
	}
	t, at, err := s.treeOf(e)
	if err != nil {
		return Removed{}, err
	}
	if at == "." {
		return Removed{}, fmt.Errorf("%s is the directory that is looked through itself: it is not moved", t.dir)
	}
	if err := s.checkIdle(ctx, t, at); err != nil {
		return Removed{}, err
	}
	out := Removed{Root: t.dir, Path: at, Entry: e.ID}
	if out.Trash, err = t.discard(at); err != nil {
		return Removed{}, fmt.Errorf("move %s to the trash: %w", filepath.Join(t.dir, filepath.FromSlash(at)), err)
	}
	if err := t.append(who, e.ID, []mark.Record{{Do: mark.Remove, Value: at, Text: out.Trash}}); err != nil {
		return out, err
	}
	_, err = s.Sync(ctx)
	return out, err
}

// checkIdle refuses what goes on, has something in it that does, or is a part of something that does.
func (s *Store) checkIdle(ctx context.Context, t *tree, at string) error {
	s.syncing.Lock()
	places, err := t.scan.Walk(ctx, time.Now())
	s.syncing.Unlock()
	if err != nil {
		return err
	}
	parent := ""
	for _, p := range places {
		if p.Path == at {
			parent = p.Parent
		}
	}
	for _, p := range places {
		inside := p.Path == at || strings.HasPrefix(p.Path, at+"/")
		if (inside || parent != "" && p.Path == parent) && t.scan.Held(p) {
			return &InUseError{path.Base(p.Path)}
		}
	}
	return nil
}

// discard moves a directory below the root into the trash, and returns its name there.
func (t *tree) discard(at string) (string, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Join(Folder, trashDir), 0o755); err != nil {
		return "", err
	}
	base := time.Now().UTC().Format(time.DateOnly) + "-" + strings.ReplaceAll(at, "/", "-")
	if len(base) > 180 { // a name has 255 bytes
		base = strings.ToValidUTF8(base[:180], "")
	}
	name := base
	for n := 2; ; n++ {
		_, err := root.Lstat(path.Join(Folder, trashDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name, root.Rename(filepath.FromSlash(at), path.Join(Folder, trashDir, name))
}

// Trash are the directories that were removed and are still there, the newest first.
func (s *Store) Trash(context.Context) ([]Removed, error) {
	var out []Removed
	for _, t := range s.trees {
		log, err := mark.Read(t.marks.path)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, r := range slices.Backward(log.Records) {
			if r.Do != mark.Remove || seen[r.Text] || !plainName(r.Text) {
				continue
			}
			seen[r.Text] = true
			x := Removed{Root: t.dir, Path: r.Value, Trash: r.Text, Entry: r.Entry}
			if info, err := os.Lstat(x.Dir()); err == nil && info.IsDir() {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// plainName reports whether a text is the name of something in a directory.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00")
}

// Restore moves a directory back from the trash to where it lay.
func (s *Store) Restore(ctx context.Context, who string, r Removed) error {
	all, err := s.Trash(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(all, r) {
		return &NotFoundError{r.Trash, fmt.Sprintf("there is no %q in the trash of %s", r.Trash, r.Root)}
	}
	for _, t := range s.trees {
		if t.dir != r.Root {
			continue
		}
		if t.readonly {
			return &ReadOnlyError{t.dir}
		}
		if err := t.putBack(r); err != nil {
			return fmt.Errorf("move %s back from the trash: %w", r.Path, err)
		}
		if err := t.append(who, r.Entry, []mark.Record{{Do: mark.Restore, Value: r.Path, Text: r.Trash}}); err != nil {
			return err
		}
	}
	_, err = s.Sync(ctx)
	return err
}

func (t *tree) putBack(r Removed) error {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	to := filepath.FromSlash(r.Path)
	if _, err := root.Lstat(to); err == nil {
		return fmt.Errorf("something else lies there: %w", fs.ErrExist)
	}
	if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return root.Rename(path.Join(Folder, trashDir, r.Trash), to)
}

// rootOf is the root of this machine that a path lies in, and the path below it.
func (s *Store) rootOf(dir string) (n int64, below string, ok bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return 0, "", false
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	for _, t := range s.trees {
		rel, err := filepath.Rel(t.dir, abs)
		if err == nil && filepath.IsLocal(rel) {
			return t.n, strings.TrimSuffix(filepath.ToSlash(rel), ".tmp"), true
		}
	}
	return 0, "", false
}
