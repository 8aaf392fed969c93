// Package hub finds what lies in the Hugging Face cache of this machine: the files of
// a model or of a dataset that an engine, or a person, downloaded.
//
//	s, err := hub.Model("Qwen/Qwen3-8B")
//	path := filepath.Join(s.Dir, "tokenizer.json")
//
// Invariants: it opens files below the cache alone, and writes none; a name that is
// no repository's is not looked up. Deliberately absent: downloads, for which an
// AbsentError has the command.
package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"perflab/internal/input"
)

// Snapshot is one revision of a repository, as it lies in the cache.
type Snapshot struct {
	Repo     string // Qwen/Qwen3-8B
	Revision string // of Git
	Dir      string // has the repository's files
}

// Kinds of repositories, as the cache's directories name them.
const (
	models   = "models"
	datasets = "datasets"
)

// Cache is the cache's directory, where the environment of Hugging Face's own
// programs has it; "" where there is no home directory.
func Cache() string {
	if dir := cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE")); dir != "" {
		return dir
	}
	home := os.Getenv("HF_HOME")
	if home == "" {
		base := os.Getenv("XDG_CACHE_HOME")
		if base == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return ""
			}
			base = filepath.Join(user, ".cache")
		}
		home = filepath.Join(base, "huggingface")
	}
	return filepath.Join(home, "hub")
}

// Model finds a model by its name.
func Model(name string) (Snapshot, error) { return find(models, name) }

// Dataset finds a dataset by its name.
func Dataset(name string) (Snapshot, error) { return find(datasets, name) }

// ModelFile finds one file of a model.
func ModelFile(name, file string) (string, Snapshot, error) {
	s, err := Model(name)
	path := filepath.Join(s.Dir, file)
	if err == nil {
		_, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = &AbsentError{Repo: name, Cache: Cache(), kind: models}
	}
	if absent, ok := errors.AsType[*AbsentError](err); ok {
		absent.File = file
	}
	if err != nil {
		return "", Snapshot{}, err
	}
	return path, s, nil
}

// AbsentError says that a repository, or a file of it, is not in the cache.
type AbsentError struct {
	Repo  string
	File  string // "": all of it is meant
	Cache string // where it was looked for
	kind  string
}

func (e *AbsentError) Error() string {
	what := e.Repo
	if e.File != "" {
		what = e.File + " of " + e.Repo
	}
	return fmt.Sprintf("%s is not in the Hugging Face cache (%s)", what, cmp.Or(e.Cache, "there is no home directory"))
}

// Download is the command that brings it there.
func (e *AbsentError) Download() string {
	words := []string{"hf", "download"}
	if e.kind == datasets {
		words = append(words, "--repo-type", "dataset")
	}
	words = append(words, e.Repo)
	if e.File != "" {
		words = append(words, e.File)
	}
	return strings.Join(words, " ")
}

// namePattern is a repository's name, with or without its owner.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$`)

// IsName reports whether a text can be a repository's name.
func IsName(text string) bool {
	return namePattern.MatchString(text) && !strings.Contains(text, "--") && !strings.Contains(text, "..")
}

// RepoOf is the repository whose cached files a path is or lies below; "" for none.
func RepoOf(path string) string {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		kind, name, ok := strings.Cut(part, "--")
		if repo := strings.ReplaceAll(name, "--", "/"); ok && (kind == datasets || kind == models) && IsName(repo) {
			return repo
		}
	}
	return ""
}

// find returns the revision that the branch main had when it was last downloaded;
// where only other revisions were, the one that there is.
func find(kind, name string) (Snapshot, error) {
	cache := Cache()
	absent := &AbsentError{Repo: name, Cache: cache, kind: kind}
	if !IsName(name) || cache == "" {
		return Snapshot{}, absent
	}
	repo := filepath.Join(cache, kind+"--"+strings.ReplaceAll(name, "/", "--"))
	revision, err := mainRevision(repo)
	if errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, absent
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("look for %s in the Hugging Face cache: %w", name, err)
	}
	return Snapshot{Repo: name, Revision: revision, Dir: filepath.Join(repo, "snapshots", revision)}, nil
}

// mostRef is the size of a file that names a revision: of 40 or 64 digits.
const mostRef = 1 << 10

var revisionPattern = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// mainRevision reads which revision of a cached repository to take.
func mainRevision(repo string) (string, error) {
	text, err := input.File(filepath.Join(repo, "refs", "main"), mostRef)
	if revision := strings.TrimSpace(string(text)); err == nil {
		if !revisionPattern.MatchString(revision) {
			return "", fmt.Errorf("%s names no revision", filepath.Join(repo, "refs", "main"))
		}
		if _, err := os.Stat(filepath.Join(repo, "snapshots", revision)); err != nil {
			return "", err
		}
		return revision, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	list, err := os.ReadDir(filepath.Join(repo, "snapshots"))
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", fs.ErrNotExist
	case len(list) > 1:
		return "", fmt.Errorf("%s has %d revisions and does not say which is main: give the path of one", repo, len(list))
	}
	return list[0].Name(), nil
}
