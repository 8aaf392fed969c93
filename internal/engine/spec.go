package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// spec is a speculation setting: METHOD:K[:DRAFT MODEL]. SGLang's trees are written
// METHOD:STEPS/TOPK/DRAFTS, and METHOD:auto leaves K to SGLang. A vLLM
// configuration with further keys stays JSON.
type spec struct {
	method string
	k      int
	auto   bool
	topK   int // SGLang: candidates a step, 0 for 1
	drafts int // SGLang: tokens verified, 0 for k+1
	draft  string
	raw    string
	open   bool // JSON that leaves the number to the engine
}

func parseSpec(value string) (spec, error) {
	if strings.HasPrefix(value, "{") {
		return specFromJSON(value)
	}
	method, rest, _ := strings.Cut(value, ":")
	k, draft, _ := strings.Cut(rest, ":")
	s := spec{method: strings.ToLower(method), draft: draft}
	if k == "auto" {
		s.auto = true
		return s, nil
	}
	parts := strings.Split(k, "/")
	nums := make([]int, len(parts))
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || s.method == "" || len(parts) != 1 && len(parts) != 3 {
			return spec{}, fmt.Errorf("speculative %q: write METHOD:K, for example mtp:1, or eagle3:3:DRAFT_MODEL", value)
		}
		nums[i] = n
	}
	s.k = nums[0]
	if len(nums) == 3 {
		s.topK, s.drafts = nums[1], nums[2]
	}
	return s, nil
}

func specFromJSON(value string) (spec, error) {
	var c struct {
		Method string `json:"method"`
		K      *int   `json:"num_speculative_tokens"`
		Model  string `json:"model"`
	}
	if err := json.Unmarshal([]byte(value), &c); err != nil {
		return spec{}, fmt.Errorf("speculative configuration %s: %w", value, err)
	}
	s := spec{method: strings.ToLower(c.Method), draft: c.Model, raw: value, open: c.K == nil}
	if c.K != nil {
		s.k = *c.K
	}
	return s, nil
}

func (s spec) String() string {
	if s.raw != "" {
		return s.raw
	}
	k := strconv.Itoa(s.k)
	switch {
	case s.auto:
		k = "auto"
	case s.topK > 0:
		k = fmt.Sprintf("%d/%d/%d", s.k, s.topK, s.drafts)
	}
	if s.draft != "" {
		return s.method + ":" + k + ":" + s.draft
	}
	return s.method + ":" + k
}

// verified is how many tokens of a tree are verified for a sequence, 0 for a chain. SGLang
// verifies a step more than it drafts where each step has one candidate, whatever is asked.
func (s spec) verified() int {
	if s.topK < 2 {
		return 0
	}
	return s.drafts
}

// MTP reports whether the model's own prediction layers do a method's guessing.
func MTP(method string) bool { return method == "mtp" || strings.HasSuffix(method, "_mtp") }

// needsDraft reports whether the method guesses by a second model.
func (s spec) needsDraft() bool {
	return slices.Contains([]string{"eagle", "eagle3", "draft_model", "standalone", "medusa", "mlp_speculator", "dflash"}, s.method)
}

// vllmSpec is a --speculative-config as a canonical value: METHOD:K[:DRAFT] if
// that says everything, the JSON itself if not.
func vllmSpec(text string) (string, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return "", fmt.Errorf("value %s is not a JSON object", text)
	}
	s, err := specFromJSON(text)
	if err != nil {
		return "", err
	}
	for key := range keys {
		if !slices.Contains([]string{"method", "num_speculative_tokens", "model"}, key) {
			s.method = ""
		}
	}
	if canonical := (spec{method: s.method, k: s.k, draft: s.draft}); s.method != "" && s.k > 0 && !strings.ContainsAny(s.method, ":{") {
		return canonical.String(), nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return "", err
	}
	return compact.String(), nil
}

func vllmSpecArgs(s spec) ([]string, error) {
	if s.raw != "" {
		return []string{"--speculative-config", s.raw}, nil
	}
	if s.auto || s.topK > 0 {
		return nil, &Rejection{Rule: "speculative", Reason: fmt.Sprintf("vLLM needs a number of tokens in %s, for example %s:1", s, s.method), Log: "error: argument --speculative-config/-sc: num_speculative_tokens is required"}
	}
	text, err := json.Marshal(struct {
		Method string `json:"method"`
		K      int    `json:"num_speculative_tokens"`
		Model  string `json:"model,omitempty"`
	}{s.method, s.k, s.draft})
	return []string{"--speculative-config", string(text)}, err
}

const (
	specAlgorithm = "--speculative-algorithm"
	specSteps     = "--speculative-num-steps"
	specTopK      = "--speculative-eagle-topk"
	specDrafts    = "--speculative-num-draft-tokens"
	specModel     = "--speculative-draft-model-path"
)

var sglangSpecFlags = []string{specAlgorithm, specSteps, specTopK, specDrafts, specModel}

// sglangSpecNames maps our method names to SGLang's algorithms.
var sglangSpecNames = map[string]string{"mtp": "NEXTN", "eagle": "EAGLE", "eagle3": "EAGLE3", "ngram": "NGRAM", "standalone": "STANDALONE"}

// sglangSpec puts SGLang's speculation flags together as one canonical value.
func sglangSpec(flags map[string]string) (string, error) {
	algorithm, ok := flags[specAlgorithm]
	if !ok {
		return "", fmt.Errorf("speculation flags without %s", specAlgorithm)
	}
	s := spec{draft: flags[specModel]}
	for ours, theirs := range sglangSpecNames {
		if theirs == algorithm {
			s.method = ours
		}
	}
	if s.method == "" {
		return "", fmt.Errorf("argument %s: invalid choice: '%s' (choose from '%s')", specAlgorithm, algorithm,
			strings.Join(slices.Sorted(maps.Values(sglangSpecNames)), "', '"))
	}
	num := func(flag string) int { n, _ := strconv.Atoi(flags[flag]); return n }
	s.k, s.topK, s.drafts = num(specSteps), num(specTopK), num(specDrafts)
	switch {
	case s.method == "ngram" && s.k == 0 && s.topK == 0 && s.drafts > 0:
		s.k, s.drafts = s.drafts, 0
	case s.k == 0 && s.topK == 0 && s.drafts == 0:
		s.auto = true
	case s.k == 0 || s.topK == 0 || s.drafts == 0:
		return "", fmt.Errorf("set all of %s, %s and %s or none", specSteps, specTopK, specDrafts)
	case s.topK == 1 && s.drafts == s.k+1:
		s.topK, s.drafts = 0, 0
	}
	return s.String(), nil
}

func sglangSpecArgs(s spec) ([]string, error) {
	name, ok := sglangSpecNames[s.method]
	if !ok || s.raw != "" {
		return nil, &Rejection{Rule: "speculative", Reason: fmt.Sprintf("SGLang has no speculation method %s; it has mtp, eagle, eagle3, ngram and standalone", s.method),
			Log: fmt.Sprintf("launch_server.py: error: argument --speculative-algorithm: invalid choice: '%s'", s.method)}
	}
	args := []string{specAlgorithm, name}
	topK, drafts := max(s.topK, 1), s.drafts
	if s.topK == 0 {
		drafts = s.k + 1
	}
	switch {
	case s.auto:
	case s.method == "ngram":
		args = append(args, specDrafts, strconv.Itoa(s.k))
	default:
		args = append(args, specSteps, strconv.Itoa(s.k), specTopK, strconv.Itoa(topK), specDrafts, strconv.Itoa(drafts))
	}
	if s.draft != "" {
		args = append(args, specModel+"="+s.draft)
	}
	return args, nil
}

// llamacppMethods maps our method names to llama.cpp's types of speculation.
var llamacppMethods = map[string]string{
	"draft_model": "draft-simple", "eagle3": "draft-eagle3", "dflash": "draft-dflash", "mtp": "draft-mtp", "ngram": "ngram-simple",
}

// llamacppSpec puts the flags of one speculation method together, where they say no
// more than METHOD:K:DRAFT can.
func llamacppSpec(flags map[string]string) (value string, ok bool) {
	s := spec{draft: cmp.Or(flags["--model-draft"], flags["--hf-repo-draft"])}
	for ours, theirs := range llamacppMethods {
		if theirs == flags["--spec-type"] {
			s.method = ours
		}
	}
	size, other := "--spec-draft-n-max", "--spec-ngram-simple-size-m"
	if s.method == "ngram" {
		size, other = other, size
	}
	k, given := flags[size]
	s.k, _ = strconv.Atoi(k)
	s.auto = !given
	file, repo := flags["--model-draft"], flags["--hf-repo-draft"]
	switch {
	case s.method == "" || flags[other] != "" || given && s.k < 1:
		return "", false
	case s.draft != "" && s.method == "ngram", file != "" && (repo != "" || !isGGUF(file)), repo != "" && isGGUF(repo):
		return "", false
	}
	return s.String(), true
}

func llamacppSpecArgs(s spec) ([]string, error) {
	method, ok := llamacppMethods[s.method]
	if !ok || s.raw != "" || s.topK > 0 || s.method == "ngram" && s.draft != "" {
		return nil, &Rejection{Rule: "speculative", Log: `error while handling argument "--spec-type": unknown speculative type`,
			Reason: fmt.Sprintf("llama.cpp has no speculation %s; it has METHOD:K with draft_model, eagle3, dflash (each with a draft model), mtp and ngram", s)}
	}
	args := []string{"--spec-type", method}
	if s.draft != "" {
		flag := "-hfd"
		if isGGUF(s.draft) {
			flag = "-md"
		}
		args = append(args, flag, s.draft)
	}
	size := "--spec-draft-n-max"
	if s.method == "ngram" {
		size = "--spec-ngram-simple-size-m"
	}
	if !s.auto {
		args = append(args, size, strconv.Itoa(s.k))
	}
	return args, nil
}

// specArgs are a speculation setting as an engine's flags. TensorRT-LLM has it in its
// configuration file.
func specArgs(engineName string, s spec) ([]string, error) {
	switch engineName {
	case "vllm":
		return vllmSpecArgs(s)
	case "sglang":
		return sglangSpecArgs(s)
	case "llamacpp":
		return llamacppSpecArgs(s)
	}
	return nil, fmt.Errorf("speculative %q: the engine has no flag for it", s)
}
