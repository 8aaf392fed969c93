package push

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"perflab/internal/push/manifest"
	"perflab/internal/store/scan"
)

// local is a directory to push.
type local struct {
	dir   string
	facts scan.Facts
}

// find finds what a directory is or has: of a study the study, and not its runs one by one.
func find(ctx context.Context, dir string) ([]local, error) {
	tree, err := scan.Open(dir)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	places, err := tree.Walk(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	var out []local
	for _, p := range places {
		if p.Parent != "" || p.Kind == scan.Folder || p.Kind == scan.Site {
			continue
		}
		f := tree.Read(p, nil)
		if p.Path == "." && strings.HasSuffix(filepath.Clean(dir), ".tmp") {
			f.State = scan.Stopped
		}
		out = append(out, local{filepath.Join(dir, filepath.FromSlash(p.Path)), f})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no run, series, study or import to push", dir)
	}
	return out, nil
}

// describe makes the manifest of a directory. What is no plain file, and what is hidden, is not in it.
func (l local) describe(ctx context.Context) (m manifest.Manifest, left []string, err error) {
	abs, err := filepath.Abs(l.dir)
	if err != nil {
		return m, nil, err
	}
	m = manifest.Manifest{Schema: manifest.Schema, Name: filepath.Base(abs), Entry: l.facts.ID, Files: []manifest.File{}}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return m, nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name == ".":
			return nil
		case strings.HasPrefix(path.Base(name), "."):
			left = append(left, name)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			left = append(left, name)
			return nil
		}
		f, err := describeFile(root, name)
		m.Files = append(m.Files, f)
		return err
	})
	if err != nil {
		return m, nil, err
	}
	return m, left, m.Validate()
}

func describeFile(root *os.Root, name string) (manifest.File, error) {
	f, err := root.Open(name)
	if err != nil {
		return manifest.File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return manifest.File{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
