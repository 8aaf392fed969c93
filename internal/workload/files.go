package workload

import (
	"fmt"
	"os"
	"path/filepath"
)

// Keys of a spec that name files.
const (
	FileDataset   = "dataset_path"
	FileTokenizer = "tokenizer"
	FileImages    = "images" // a directory of them: rows of the dataset name each
)

// File is a file that a workload is made of.
type File struct {
	Key  string // of the spec, which names it or its directory
	Path string
	Name string // below the directory that the spec names; "": the spec names the file
}

// Files are those that another machine needs to open the same workload, images that rows of a
// dataset name by their paths among them.
func (s Spec) Files() ([]File, error) {
	var out []File
	switch {
	case s.Path == "":
	case s.Dataset == hf().name:
		var err error
		if out, err = hfPieces(s.Defaults()); err != nil {
			return nil, err
		}
	case s.Dataset == agentSessions().name:
		var err error
		if out, err = agentPieces(s); err != nil {
			return nil, err
		}
	default:
		out = append(out, File{Key: FileDataset, Path: s.Path})
		if s.Dataset == jsonl().name {
			images, err := jsonlImages(s)
			if err != nil {
				return nil, fmt.Errorf("find the images of %s: %w", s.Path, err)
			}
			out = append(out, images...)
		}
	}
	info, err := os.Stat(s.Tokenizer)
	switch {
	case s.Tokenizer == "", s.Tokenizer == ServerTokenizer, s.Tokenizer == EstimateTokenizer, err != nil: // what is wrong with a path is said where it is opened
	case info.IsDir():
		out = append(out, File{Key: FileTokenizer, Path: filepath.Join(s.Tokenizer, "tokenizer.json"), Name: "tokenizer.json"})
	default:
		out = append(out, File{Key: FileTokenizer, Path: s.Tokenizer})
	}
	return out, nil
}

// At is the spec with its files elsewhere: places are by key, each a file or the directory that
// has the files by their names.
func (s Spec) At(places map[string]string) Spec {
	if path, ok := places[FileDataset]; ok && s.Path != "" {
		if s.Dataset == hf().name {
			s.HFName = hfName(s)
		}
		s.Path = path
	}
	if path, ok := places[FileImages]; ok {
		s.ImagesAt = path
	}
	if path, ok := places[FileTokenizer]; ok && s.Tokenizer != "" {
		s.Tokenizer = path
	}
	return s
}

// hfPieces are the files of a dataset from the Hugging Face hub.
func hfPieces(s Spec) ([]File, error) {
	dir, file, err := hfPlace(s)
	if err != nil {
		return nil, err
	}
	if file {
		return []File{{Key: FileDataset, Path: dir}}, nil
	}
	paths, err := hfFiles(s)
	if err != nil {
		return nil, err
	}
	out := make([]File, len(paths))
	for i, path := range paths {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, fmt.Errorf("name the files of %s: %w", s.Path, err)
		}
		out[i] = File{Key: FileDataset, Path: path, Name: name}
	}
	return out, nil
}
