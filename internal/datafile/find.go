package datafile

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ChoiceError says that a directory has no such subset or split, or several where one
// must be chosen.
type ChoiceError struct {
	What string   // subset, split
	Want string   // "": none was named
	Have []string // to choose of
}

func (e *ChoiceError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("has several %ss: choose one of %s", e.What, strings.Join(e.Have, ", "))
	}
	if len(e.Have) == 0 {
		return fmt.Sprintf("has no %s %s", e.What, e.Want)
	}
	return fmt.Sprintf("has no %s %s: it has %s", e.What, e.Want, strings.Join(e.Have, ", "))
}

// Find returns the files of a split below a dataset's directory, in the order of their
// names. Files are told apart by the names of directories and files, as the datasets
// library does where a dataset says nothing else: the subset by its directory, the split
// by a word such as train or test; files without any are of the split train. An empty
// subset stands for the only one.
func Find(dir, subset, split string) ([]string, error) {
	files, err := dataFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file that is read (%s)", dir, strings.Join(Extensions(), ", "))
	}
	if files, err = ofSubset(files, subset); err != nil {
		return nil, err
	}
	if files, err = ofSplit(files, split); err != nil {
		return nil, err
	}
	for i, f := range files {
		files[i] = filepath.Join(dir, filepath.FromSlash(f))
	}
	return files, nil
}

// aside are files of datasets that have no rows of them.
var aside = []string{"config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}

// dataFiles are the paths below a directory of the files that may have rows, those in
// Parquet where there are any. In a cache they are links.
func dataFiles(dir string) ([]string, error) {
	var all, columns []string
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch hidden := name != "." && strings.HasPrefix(path.Base(name), "."); {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir(), hidden, slices.Contains(aside, path.Base(name)), !slices.Contains(Extensions(), path.Ext(name)):
			return nil
		}
		if all = append(all, name); path.Ext(name) == ".parquet" {
			columns = append(columns, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for data files: %w", err)
	}
	if len(columns) > 0 {
		return columns, nil
	}
	return all, nil
}

// ofSubset are the files of a subset.
func ofSubset(files []string, subset string) ([]string, error) {
	have := map[string][]string{}
	for _, f := range files {
		have[subsetOf(f)] = append(have[subsetOf(f)], f)
	}
	names := slices.Sorted(maps.Keys(have))
	switch {
	case subset != "" && have[subset] != nil:
		return have[subset], nil
	case len(names) == 1 && (subset == "" || names[0] == "" && subset == "default"):
		return files, nil
	}
	return nil, &ChoiceError{"subset", subset, slices.DeleteFunc(names, func(n string) bool { return n == "" })}
}

// subsetOf is the first directory on the way to a file that is neither data nor of a
// split; "" where there is none.
func subsetOf(file string) string {
	dir := path.Dir(file)
	if dir == "." {
		return ""
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part != "data" && keywordIn(part) == "" {
			return part
		}
	}
	return ""
}

// ofSplit are the files of a split.
func ofSplit(files []string, split string) ([]string, error) {
	have := map[string][]string{}
	for _, f := range files {
		if name := splitOf(f); name != "" {
			have[name] = append(have[name], f)
		}
	}
	if len(have) == 0 {
		have["train"] = files
	}
	if have[split] == nil {
		return nil, &ChoiceError{"split", split, slices.Sorted(maps.Keys(have))}
	}
	return have[split], nil
}

// sharded is the name of a file that is one of several of its split.
var sharded = regexp.MustCompile(`^(.+)-[0-9]{5}-of-[0-9]{5}`)

// splitOf is the split that the names of a file and its directories tell; "" for none.
func splitOf(file string) string {
	if m := sharded.FindStringSubmatch(path.Base(file)); m != nil {
		return m[1]
	}
	for part := range strings.SplitSeq(path.Dir(file), "/") {
		if k := keywordIn(part); k != "" {
			return k
		}
	}
	return keywordIn(strings.TrimSuffix(path.Base(file), path.Ext(file)))
}

// splitWords are the words by which splits are known.
var splitWords = map[string]string{
	"train": "train", "training": "train",
	"validation": "validation", "valid": "validation", "dev": "validation", "val": "validation",
	"test": "test", "testing": "test", "eval": "test", "evaluation": "test",
}

// keywordIn is the split that a word of a name tells.
func keywordIn(name string) string {
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-._ 0123456789", r) }) {
		if split := splitWords[word]; split != "" {
			return split
		}
	}
	return ""
}
