package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/arch"
)

// Model is a model in the Hugging Face cache.
type Model struct {
	ID        string  `json:"id"`
	Weights   string  `json:"weights"` // all, part, none
	GiB       float64 `json:"weights_gib,omitempty"`
	Tokenizer bool    `json:"tokenizer"`        // its tokenizer.json is there
	Known     bool    `json:"known"`            // perflab can predict it without its config.json
	Config    string  `json:"config,omitempty"` // path of that, "": it is not there
}

// How much of a model's weights is there.
const (
	AllWeights  = "all"
	SomeWeights = "part"
	NoWeights   = "none"
)

// hub is the directory of the cache, by the rules of huggingface_hub.
func hub(p Probes) string {
	switch {
	case p.Env("HF_HUB_CACHE") != "":
		return p.Env("HF_HUB_CACHE")
	case p.Env("HF_HOME") != "":
		return filepath.Join(p.Env("HF_HOME"), "hub")
	case p.Env("XDG_CACHE_HOME") != "":
		return filepath.Join(p.Env("XDG_CACHE_HOME"), "huggingface", "hub")
	case p.Home != "":
		return filepath.Join(p.Home, ".cache", "huggingface", "hub")
	}
	return ""
}

func lookModels(ctx context.Context, p Probes) (func(*Report), error) {
	dir := hub(p)
	if dir == "" {
		return nil, errors.New("this user has no home directory, so the cache is not known")
	}
	disk := p.Dir(dir)
	entries, err := fs.ReadDir(disk, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []Model
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		name, ok := strings.CutPrefix(e.Name(), "models--")
		if ok && e.IsDir() {
			m := model(disk, e.Name(), strings.ReplaceAll(name, "--", "/"))
			if m.Config != "" {
				m.Config = filepath.Join(dir, filepath.FromSlash(m.Config))
			}
			found = append(found, m)
		}
	}
	return func(r *Report) { r.Cache, r.Models = dir, append(r.Models, found...) }, err
}

// model reads one model's newest snapshot, that of its branch main where there is one.
func model(disk fs.FS, dir, id string) Model {
	m := Model{ID: id, Weights: NoWeights}
	_, err := arch.LookupModel(id)
	m.Known = err == nil
	snapshot := path.Join(dir, "snapshots", revision(disk, dir))
	files, _ := fs.ReadDir(disk, snapshot) // none where it is not there
	size, shards := int64(0), map[string]bool{}
	for _, f := range files {
		switch name := f.Name(); {
		case name == "tokenizer.json":
			m.Tokenizer = true
		case name == "config.json":
			m.Config = path.Join(snapshot, name)
		case slices.Contains([]string{".safetensors", ".bin", ".gguf"}, path.Ext(name)):
			if info, err := fs.Stat(disk, path.Join(snapshot, name)); err == nil { // else the link leads nowhere
				size += info.Size()
				shards[name] = true
			}
		}
	}
	m.GiB = float64(size) / (1 << 30)
	if len(shards) > 0 {
		m.Weights = AllWeights
		if lacks(disk, path.Join(snapshot, "model.safetensors.index.json"), shards) || loading(disk, dir) {
			m.Weights = SomeWeights
		}
	}
	return m
}

// revision is the snapshot that engines load.
func revision(disk fs.FS, dir string) string {
	if b, err := fs.ReadFile(disk, path.Join(dir, "refs", "main")); err == nil {
		return strings.TrimSpace(string(b))
	}
	all, _ := fs.ReadDir(disk, path.Join(dir, "snapshots"))
	if len(all) == 0 {
		return "none"
	}
	return all[len(all)-1].Name()
}

// lacks reports whether an index names weights that are not there. A model of one file has none.
func lacks(disk fs.FS, index string, shards map[string]bool) bool {
	b, err := fs.ReadFile(disk, index)
	if err != nil {
		return false
	}
	var of struct {
		Weights map[string]string `json:"weight_map"`
	}
	if json.Unmarshal(b, &of) != nil {
		return true
	}
	for _, file := range of.Weights {
		if !shards[file] {
			return true
		}
	}
	return false
}

// loading reports whether a download has not ended.
func loading(disk fs.FS, dir string) bool {
	blobs, _ := fs.ReadDir(disk, path.Join(dir, "blobs"))
	return slices.ContainsFunc(blobs, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".incomplete") })
}
