package vllmbench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// dataset finds the line's dataset, and refuses one that perflab does not have.
func (t *translation) dataset() error {
	t.data = cmp.Or(t.value("dataset-name"), "random")
	c, ok := choiceOf(Datasets(), t.data)
	if !ok || slices.Contains(t.own.Datasets, t.data) {
		return nil
	}
	if c.State == Refused {
		return fmt.Errorf("there is no --dataset-name %s here: %s", t.data, c.Note)
	}
	if t.data == "timed_trace" {
		return t.timedTrace()
	}
	return nil
}

// applies reports whether a row's flag is one of the dataset's. Of datasets that vLLM
// does not have, perflab knows itself.
func (t *translation) applies(r Row) bool {
	_, theirs := choiceOf(Datasets(), t.data)
	return !theirs || slices.Contains(strings.Fields(r.only), t.data)
}

// timedTrace refuses traces of another format than Mooncake's.
func (t *translation) timedTrace() error {
	for _, f := range []struct{ name, only string }{
		{"timed-trace-chunk-hash-size", "512"}, {"timed-trace-sec-multiplier", "0.001"},
		{"timed-trace-label-timestamp", "timestamp"}, {"timed-trace-label-input-length", "input_length"},
		{"timed-trace-label-output-length", "output_length"}, {"timed-trace-label-hash-ids", "hash_ids"},
	} {
		if v := cmp.Or(t.value(f.name), known(f.name).Default); v != f.only {
			return fmt.Errorf("there is no --%s %s here: traces are read in Mooncake's format, where it is %s; convert the file and give --dataset-name mooncake", f.name, v, f.only)
		}
	}
	return nil
}

// datasetName gives the dataset in perflab's name, with what vLLM says by further flags.
func (t *translation) datasetName(it item) error {
	switch {
	case slices.Contains(t.own.Datasets, t.data):
	case t.data == "random-mm":
		t.give("dataset-name", "random")
		return t.images()
	case t.data == "random-rerank":
		t.give("dataset-name", "random")
		return t.rerank()
	case t.data == "timed_trace":
		t.give("dataset-name", "mooncake")
		if t.has("no-self-timed") && !t.has("request-rate") {
			t.give("request-rate", "inf")
		}
		return nil
	}
	return t.pass(it)
}

// rerank gives the lengths of random-rerank: half of the input is the query, and one
// token between query and document is neither's.
func (t *translation) rerank() error {
	n, err := t.length("input")
	if err != nil {
		return err
	}
	query := n/2 - 1
	if query < 1 {
		return fmt.Errorf("--random-input-len %d is too short for a query and a document: give 4 or more", n)
	}
	if t.varies() {
		return fmt.Errorf("--random-range-ratio does not apply to --dataset-name random-rerank here, whose documents have one length: leave it out")
	}
	t.give("scenario", fmt.Sprintf("R(%d,%d)", n-query-1, query))
	b := t.batch()
	t.give("random-batch-size", strconv.Itoa(b))
	if !t.has("num-prompts") {
		t.give("num-prompts", strconv.Itoa((1000+b-1)/b))
	}
	return nil
}

// images gives the images of random-mm.
func (t *translation) images() error {
	n, err := strconv.Atoi(cmp.Or(t.value("random-mm-base-items-per-request"), "1"))
	if err != nil || n < 1 {
		return fmt.Errorf("--random-mm-base-items-per-request %q: give a whole number from 1 on", t.value("random-mm-base-items-per-request"))
	}
	limit := struct{ Image *int }{}
	if text := t.value("random-mm-limit-mm-per-prompt"); text != "" {
		if err := json.Unmarshal([]byte(text), &limit); err != nil {
			return fmt.Errorf(`--random-mm-limit-mm-per-prompt %q is no JSON object such as {"image": 3, "video": 0}`, text)
		}
	}
	if limit.Image != nil {
		if n = min(n, *limit.Image); n < 1 {
			return fmt.Errorf("--random-mm-limit-mm-per-prompt allows no image: use --dataset-name random for prompts of text")
		}
	}
	sizes, err := imageSizes(cmp.Or(t.value("random-mm-bucket-config"), named("random-mm-bucket-config", Python()).Default))
	if err != nil {
		return err
	}
	t.give("random-images", strconv.Itoa(n))
	t.give("random-image-size", sizes)
	return nil
}

// bucket is an entry of a bucket configuration: (height, width, frames): share.
var bucket = regexp.MustCompile(`['"]?\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)['"]?\s*:\s*([0-9.eE+-]+)`)

// imageSizes writes a bucket configuration, a dict as Python writes it, as sizes with
// their shares: 256x256:0.5,1280x720:0.5.
func imageSizes(config string) (string, error) {
	const name = "--random-mm-bucket-config"
	if strings.Trim(bucket.ReplaceAllString(config, ""), "{}, \n") != "" {
		return "", fmt.Errorf("%s %q: write it as {(256, 256, 1): 0.5, (720, 1280, 1): 0.5}", name, config)
	}
	var sizes []string
	for _, m := range bucket.FindAllStringSubmatch(config, -1) {
		share, err := strconv.ParseFloat(m[4], 64)
		switch {
		case err != nil || share < 0 || math.IsInf(share, 0):
			return "", fmt.Errorf("%s: %q is no share", name, m[4])
		case share == 0:
			continue
		case m[3] != "1":
			return "", fmt.Errorf("%s has a video of %s frames: images alone are sent, so leave it out", name, m[3])
		}
		sizes = append(sizes, m[2]+"x"+m[1]+":"+strconv.FormatFloat(share, 'g', -1, 64))
	}
	if len(sizes) == 0 {
		return "", fmt.Errorf("%s %q names no image", name, config)
	}
	if len(sizes) == 1 {
		sizes[0], _, _ = strings.Cut(sizes[0], ":")
	}
	return strings.Join(sizes, ","), nil
}

// inputLen and outputLen are one flag for all datasets, which goes before theirs.
func inputLen(t *translation, it item) error {
	if !t.drawn() {
		t.give("random-input-len", it.values...)
	}
	return nil
}

func outputLen(t *translation, it item) error {
	name := map[string]string{
		"random": "random-output-len", "random-mm": "random-output-len", "sharegpt": "sharegpt-output-len",
		"prefix_repetition": "prefix-repetition-output-len", "custom": "custom-output-len", "hf": "hf-output-len",
	}[t.data]
	_, theirs := choiceOf(Datasets(), t.data)
	switch own, _ := t.own.Flag(name); {
	case strings.HasPrefix(name, "random") && t.drawn():
	case own:
		t.give(name, it.values...)
	case theirs && name == "":
		t.note("--output-len has no effect with --dataset-name %s, as in vllm bench serve", t.data)
	default:
		return t.pass(it)
	}
	return nil
}

// ofLines is a flag of datasets that have rows; others have nothing to choose from.
func ofLines(t *translation, it item) error {
	if slices.Contains([]string{"random", "random-mm", "prefix_repetition", "timed_trace"}, t.data) {
		return nil
	}
	return t.pass(it)
}

// randomLen gives a length, unless a flag for all datasets or a scenario says it.
func randomLen(t *translation, it item) error {
	if t.has(strings.TrimPrefix(it.name, "random-")) || t.drawn() {
		return nil
	}
	return t.pass(it)
}

// drawn reports whether the lengths become a scenario: two range ratios, or texts in
// batches.
func (t *translation) drawn() bool {
	return t.data == "random-rerank" || strings.HasPrefix(strings.TrimSpace(t.value("random-range-ratio")), "{") && t.data == "random" || t.batch() > 1 && t.pools()
}

// varies reports whether lengths are to vary.
func (t *translation) varies() bool { return strings.Trim(t.value("random-range-ratio"), "0.") != "" }

// numPrompts gives the number of requests: texts in batches are fewer.
func numPrompts(t *translation, it item) error {
	n, err := strconv.Atoi(t.value(it.name))
	if b := t.batch(); err == nil && b > 1 && t.pools() && strings.HasPrefix(t.data, "random") {
		t.give(it.name, strconv.Itoa((n+b-1)/b))
		return nil
	}
	return t.pass(it)
}

func (t *translation) batch() int {
	n, err := strconv.Atoi(cmp.Or(t.value("random-batch-size"), "1"))
	if err != nil || n < 1 || t.has("scenario") {
		return 1 // which the flag itself says
	}
	return n
}

// length is a length of the random dataset, whichever flag says it.
func (t *translation) length(which string) (int, error) {
	text := cmp.Or(t.value(which+"-len"), t.value("random-"+which+"-len"), named("random-"+which+"-len", Python()).Default)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--random-%s-len %q: give a whole number from 1 on", which, text)
	}
	return n, nil
}

// rangeRatio gives one ratio, or the scenario that follows from two.
func (t *translation) rangeRatio(it item) error {
	if t.data == "random-rerank" || t.batch() > 1 && t.pools() {
		return nil // which rerank and batchSize look at
	}
	text := strings.TrimSpace(t.value(it.name))
	if !strings.HasPrefix(text, "{") {
		return t.pass(it)
	}
	var ratio struct{ Input, Output float64 }
	if err := json.Unmarshal([]byte(text), &ratio); err != nil {
		return fmt.Errorf(`--random-range-ratio %q: write a number, or {"input": 0.3, "output": 0.5}`, text)
	}
	if t.data != "random" || t.pools() {
		return fmt.Errorf("--random-range-ratio has two numbers, which --dataset-name random alone takes, of a backend that generates: give one number")
	}
	var parts []string
	for _, x := range []struct {
		which string
		ratio float64
	}{{"input", ratio.Input}, {"output", ratio.Output}} {
		n, err := t.length(x.which)
		if err != nil {
			return err
		}
		if !(x.ratio >= 0 && x.ratio < 1) {
			return fmt.Errorf("--random-range-ratio has %g for %s: it must be at least 0 and below 1", x.ratio, x.which)
		}
		least := max(1, int(math.Floor(float64(n)*(1-x.ratio))))
		parts = append(parts, fmt.Sprintf("(%d,%d)", least, int(math.Ceil(float64(n)*(1+x.ratio)))))
	}
	t.give("scenario", "U"+strings.Join(parts, "/"))
	return nil
}

// batchSize gives texts in batches, which are a scenario of their own.
func (t *translation) batchSize(it item) error {
	switch {
	case t.has("scenario"):
		return t.pass(it)
	case t.value(it.name) == "1" || t.data == "random-rerank":
		return nil
	case !t.pools():
		return fmt.Errorf("--random-batch-size is for embeddings: give --backend openai-embeddings")
	}
	n, err := t.length("input")
	if err != nil {
		return err
	}
	if t.varies() {
		return fmt.Errorf("--random-batch-size makes texts of one length: leave --random-range-ratio out")
	}
	t.give("scenario", fmt.Sprintf("E(%d)", n))
	if !t.has("num-prompts") {
		b := t.batch()
		t.give("num-prompts", strconv.Itoa((1000+b-1)/b))
	}
	return t.pass(it)
}
