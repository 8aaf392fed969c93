package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// row is what is kept of one request of a dataset.
type row struct {
	input, output int           // tokens
	at            time.Duration // offset within a trace
	documents     int           // beside the prompt
}

// texts is how many texts the request has.
func (r row) texts() int { return 1 + r.documents }

// source is a dataset cut to the requests of a workload.
type source struct {
	rows   []row
	prompt func(i int) string // builds the prompt of rows[i]; pure
	read   int                // rows of the file that were looked at
	drops  drops

	fill          func(i int, r *Request) // adds what rows[i] has beside its prompt; nil: nothing
	conversations []conversation          // conversations by row; nil: requests stand alone
	chat          string                  // what of the rows only a chat API can send; "": nothing
	first         []int                   // index of each conversation's first turn
	ids           bool                    // of ids in place of text
}

// open reads the dataset of a valid spec with its defaults filled in.
func open(s Spec, k promptBuilder) (source, error) {
	switch {
	case s.Dataset == "random":
		return openRandom(s, k)
	case s.Dataset == "prefix_repetition":
		return openPrefixRepetition(s, k), nil
	case s.Dataset == "shared-prefix":
		return openSharedPrefix(s, k), nil
	case s.Dataset == "sonnet":
		return openSonnet(s, k)
	case s.Dataset == "conversations" && s.Path == "":
		return synthesizeConversations(s, k), nil
	}
	f, err := os.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return source{}, field.Errorf("dataset_path", "%s does not exist"+fileHint(s.Dataset), s.Path)
	} else if err != nil {
		return source{}, field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	defer f.Close()
	var src source
	switch s.Dataset {
	case "sharegpt":
		src, err = readShareGPT(f, s, k)
	case "azure":
		src, err = readAzure(f, s, k)
	case "mooncake":
		src, err = readMooncake(f, s, k)
	case "jsonl":
		src, err = readJSONL(f, s)
	case "conversations":
		src, err = readConversations(f, s, k)
	case "burstgpt":
		src, err = readBurstGPT(f, s, k)
	}
	if err != nil {
		return source{}, fmt.Errorf("read %s dataset %s: %w", s.Dataset, s.Path, err)
	}
	if len(src.rows) == 0 {
		return source{}, fmt.Errorf("%s dataset %s has no usable row: %s", s.Dataset, s.Path, src.drops.sentence(src.read))
	}
	return src, nil
}

// fileHint says where the file of a dataset comes from.
func fileHint(dataset string) string {
	switch dataset {
	case "sharegpt":
		return ": download ShareGPT_V3_unfiltered_cleaned_split.json of the Hugging Face dataset" +
			" anon8231489123/ShareGPT_Vicuna_unfiltered, or choose [dataset_name] random, which needs no file"
	case "azure":
		return ": a CSV file with the columns " + strings.Join(azureColumns, ", ") +
			" as in AzurePublicDataset on GitHub"
	case "burstgpt":
		return ": a CSV file with the columns " + strings.Join(burstColumns, ", ") +
			" as in the BurstGPT traces on GitHub"
	case "mooncake":
		return ": a JSONL file with the keys timestamp, input_length, output_length and hash_ids" +
			" as in the traces that Mooncake publishes"
	case "jsonl":
		return `: a file with one {"prompt": "...", "output_tokens": 100} per line`
	case "conversations":
		return `: a ShareGPT JSON file, or one with a {"messages": [...]} per line; without a path conversations are made up`
	}
	return ""
}

// drops counts left out rows by reason, a phrase that reads after "rows".
type drops map[string]int

func (d drops) list() []Drop {
	var out []Drop
	for _, reason := range slices.Sorted(maps.Keys(d)) {
		out = append(out, Drop{reason, d[reason]})
	}
	slices.SortStableFunc(out, func(a, b Drop) int { return cmp.Compare(b.Rows, a.Rows) })
	return out
}

func (d drops) sentence(read int) string {
	if read == 0 {
		return "it has no rows at all"
	}
	parts := []string{fmt.Sprintf("%d read", read)}
	for _, x := range d.list() {
		parts = append(parts, fmt.Sprintf("%d %s", x.Rows, x.Reason))
	}
	return strings.Join(parts, ", ")
}

// shuffled returns the indexes below n in random order, or in file order.
func shuffled(s Spec, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if !s.DisableShuffle {
		rng := stat.Stream(s.Seed, "dataset shuffle")
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// sample makes the requests of src those of its rows that order names, as many
// as the spec asks for: the first ones, and beyond their number, unless told
// not to, again at random.
func sample(s Spec, src source, prompts []string, order []int) source {
	n := len(order)
	count := cmp.Or(s.NumPrompts, n)
	rng := stat.Stream(s.Seed, "dataset oversample")
	for n > 0 && len(order) < count && !s.NoOversample {
		order = append(order, order[rng.IntN(n)])
	}
	order = order[:min(count, len(order))]
	rows := make([]row, len(order))
	for i, k := range order {
		rows[i] = src.rows[k]
	}
	src.rows = rows
	src.prompt = func(i int) string { return prompts[order[i]] }
	src.reorder(order)
	return src
}

// cutTrace keeps the first rows of a trace in order of time, and returns for
// each which row of the file order it was.
func cutTrace(s Spec, rows []row) ([]row, []int, error) {
	if s.NumPrompts > len(rows) && len(rows) > 0 {
		return nil, nil, field.Errorf("num_prompts", "%d is more than its %d usable rows, and a trace is not repeated", s.NumPrompts, len(rows))
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[a].at, rows[b].at) })
	if s.NumPrompts > 0 {
		order = order[:min(s.NumPrompts, len(order))]
	}
	kept := make([]row, len(order))
	for i, k := range order {
		kept[i] = rows[k]
	}
	return kept, order, nil
}

// traceFault returns why a row of a trace cannot be replayed; err is for
// numbers that no trace has.
func traceFault(r row) (reason string, err error) {
	switch {
	case r.input < 0 || r.output < 0:
		return "", fmt.Errorf("negative length (%d input, %d output tokens)", r.input, r.output)
	case r.input > maxTokens || r.output > maxTokens:
		return "", fmt.Errorf("%d input and %d output tokens are over the limit of %d", r.input, r.output, maxTokens)
	case r.input == 0:
		return "with no input tokens", nil
	case r.output == 0:
		return "with no output tokens", nil
	}
	return "", nil
}

// trimSpace returns the text without the first word's space.
func trimSpace(b *strings.Builder) string { return strings.TrimPrefix(b.String(), " ") }

// bytesFor is how much n words take: just over the mean of 7.2 bytes each.
func bytesFor(n int) int { return 8*n + 64 }
