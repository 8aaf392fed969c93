package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/datafile"
	"perflab/internal/field"
	"perflab/internal/hub"
	"perflab/internal/stat"
)

// hf is datasets of Hugging Face that `vllm bench serve` knows the columns of, as files of
// this machine: below its Hugging Face cache, or wherever the path is.
func hf() dataset {
	return dataset{
		name: "hf", group: groupFile,
		params: []param{
			keepOrder, noRepeats,
			{key: "hf_name", help: "what the files of a [dataset_path] outside of the cache are of: " + strings.Join(hfNames(), ", ")},
			{key: "hf_subset", help: "the dataset's subset (default the only one; of openai/gsm8k main)"},
			{key: "hf_split", help: "its split (default train; of openai/gsm8k and openai/openai_humaneval test)"},
			{key: "hf_output_len", help: "output tokens in place of the dataset's own"},
		},
		fill: fillHF, check: checkHF, find: readHF,
		hint: ": the dataset's name, such as openai/gsm8k, of one that is in the Hugging Face cache of this machine, or the path of its files; nothing is downloaded",
		title: func(s Spec) string {
			title := "Dataset " + hfName(s)
			if slices.Contains(datafile.Extensions(), filepath.Ext(s.Path)) {
				return ofFile(title, s)
			}
			return fmt.Sprintf("%s (%s)", title, strings.TrimPrefix(s.HFSubset+", "+s.HFSplit, ", "))
		},
	}
}

func fillHF(s *Spec) {
	s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
	k, _ := hfKindOf(hfName(*s))
	s.HFSubset, s.HFSplit = cmp.Or(s.HFSubset, k.subset), cmp.Or(s.HFSplit, k.split, "train")
}

func checkHF(s, _ Spec, f *faults) {
	name, path := hfName(s), "hf_name"
	if s.HFName == "" {
		path = "dataset_path"
	}
	if _, ok := hfKindOf(name); ok {
		return
	}
	const other = ": for other prompts write a file for [dataset_name] custom or jsonl"
	switch why := hfLeftOut[name]; {
	case why != "":
		f.add(path, "%s %s"+other, name, why)
	case s.HFName == "" && !hub.IsName(s.Path):
		f.add("hf_name", "is needed for the files of a [dataset_path] outside of the cache, to know their columns: %s"+other, either(hfNames()))
	default:
		f.add(path, "%q is no dataset whose columns are known (known: %s)"+other, name, strings.Join(hfNames(), ", "))
	}
}

// hfName is the name of the dataset that a spec's files are of.
func hfName(s Spec) string { return cmp.Or(s.HFName, hub.RepoOf(s.Path), s.Path) }

// readHF samples the rows of a dataset. They are shuffled as `vllm bench serve --no-stream`
// shuffles them from the same seed; what it does without that flag changes with the release
// of the datasets library.
func readHF(s Spec, p promptBuilder) (source, error) {
	files, err := hfFiles(s)
	if err != nil {
		return source{}, err
	}
	d := hfRows{files: files}
	for _, path := range files {
		n, err := datafile.Count(path)
		if err != nil {
			return source{}, err
		}
		d.first = append(d.first, d.n)
		d.n += n
	}
	k, _ := hfKindOf(hfName(s)) // Validate has seen that there is one
	return sampleAsVLLM(s, source{drops: dropCounts{}}, d.in(d.order(s), s.NumPrompts), func(r datafile.Row) (taken, error) {
		t, err := k.take(r, s, p)
		if err != nil {
			err = fmt.Errorf("%w: is this a file of %s?", err, hfName(s))
		}
		return t, err
	})
}

// hfPlace is the directory that has the files of a dataset, or the one file; file tells which.
func hfPlace(s Spec) (path string, file bool, err error) {
	info, err := os.Stat(s.Path)
	switch {
	case err == nil:
		return s.Path, !info.IsDir(), nil
	case !errors.Is(err, fs.ErrNotExist) || !hub.IsName(s.Path):
		return "", false, field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	at, err := hub.Dataset(s.Path)
	if absent, ok := errors.AsType[*hub.AbsentError](err); ok {
		return "", false, field.Errorf("dataset_path", "%v: get it by %q, or give the path of its files", err, absent.Download())
	} else if err != nil {
		return "", false, field.Errorf("dataset_path", "%v", err)
	}
	return at.Dir, false, nil
}

// hfFiles are the files of the spec's subset and split.
func hfFiles(s Spec) ([]string, error) {
	dir, file, err := hfPlace(s)
	if err != nil {
		return nil, err
	}
	if file {
		return []string{dir}, nil
	}
	files, err := datafile.Find(dir, s.HFSubset, s.HFSplit)
	if choice, ok := errors.AsType[*datafile.ChoiceError](err); ok {
		return nil, field.Errorf("hf_"+choice.What, "%s %v", s.Path, err)
	} else if err != nil {
		return nil, field.Errorf("dataset_path", "%v", err)
	}
	return files, nil
}

// hfRows is rows of several files, which count as one list.
type hfRows struct {
	files []string
	first []int // row of each file in the list
	n     int   // rows in all
}

// order is the order in which rows are looked at.
func (d hfRows) order(s Spec) []int {
	if !s.DisableShuffle {
		return stat.NewNumPy(s.Seed).Permutation(d.n)
	}
	order := make([]int, d.n)
	for i := range order {
		order[i] = i
	}
	return order
}

// in yields the rows in an order. They are read some at a time, twice as many as are wanted at
// first and then ever more, so that no more of a large dataset is in memory than is needed.
func (d hfRows) in(order []int, wanted int) iter.Seq2[datafile.Row, error] {
	return func(yield func(datafile.Row, error) bool) {
		for some := max(2*wanted, 1000); len(order) > 0; some *= 2 {
			part := order[:min(some, len(order))]
			order = order[len(part):]
			rows, err := d.read(part)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range part {
				if !yield(rows[i], nil) {
					return
				}
			}
		}
	}
}

// read reads rows by their numbers in the list.
func (d hfRows) read(numbers []int) (map[int]datafile.Row, error) {
	sorted := slices.Sorted(slices.Values(numbers))
	out := make(map[int]datafile.Row, len(numbers))
	for i, path := range d.files {
		end := d.n
		if i+1 < len(d.files) {
			end = d.first[i+1]
		}
		n, _ := slices.BinarySearch(sorted, end)
		own := sorted[:n]
		sorted = sorted[n:]
		in := make([]int, len(own))
		for k, number := range own {
			in[k] = number - d.first[i]
		}
		k := 0
		for r, err := range datafile.Rows(path, in) {
			if err != nil {
				return nil, err
			}
			out[own[k]] = r
			k++
		}
	}
	return out, nil
}

// hfNames are the names of the datasets that are read.
func hfNames() []string { return slices.Sorted(maps.Keys(hfKinds())) }

// hfKindOf is how a dataset is read.
func hfKindOf(name string) (hfKind, bool) {
	k, ok := hfKinds()[name]
	return k, ok
}
