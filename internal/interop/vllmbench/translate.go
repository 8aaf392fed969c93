package vllmbench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// finish adds what vLLM does without being told, and what several flags say together.
func (t *translation) finish() error {
	if body := t.value("extra-body"); body != "" || len(t.extra) > 0 {
		given := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(cmp.Or(body, "{}")), &given); err != nil || len(t.extra) == 0 {
			t.give("extra-body", body) // what is no object is refused by who sends it
		} else {
			all := maps.Clone(t.extra)
			maps.Copy(all, given)
			b, err := json.Marshal(all)
			if err != nil {
				return fmt.Errorf("--extra-body: %w", err)
			}
			t.give("extra-body", string(b))
		}
	}
	if t.has("reset-prefix-cache") && !t.has("cache") {
		t.give("cache", "reset")
	}
	if t.serve {
		t.defaults()
	}
	return nil
}

// defaults are vLLM's where they are not perflab's.
func (t *translation) defaults() {
	given := func(name string) bool { return t.has(name) }
	if !given("backend") && !given("endpoint-type") && !given("endpoint") {
		t.give("backend", "openai")
	}
	for _, d := range []struct{ name, value string }{{"seed", "0"}, {"num-warmups", "0"}} {
		if !given(d.name) {
			t.give(d.name, d.value)
		}
	}
	if !given("cache") && !given("reset-prefix-cache") {
		t.give("cache", "shared")
	}
	if !given("percentile-metrics") && !given("sweep-max-concurrency") && !given("sweep-request-rate") && !given("sweep") && !given("find-max") {
		t.give("percentile-metrics", map[bool]string{true: "e2el", false: "ttft,tpot,itl"}[t.pools()])
	}
	if t.completes() && !given("repetition-penalty") {
		t.give("repetition-penalty", "1")
	}
	switch t.data {
	case "random":
		switch name := t.value("tokenizer"); {
		case given("random-rng") || given("scenario") || t.drawn() || name == "" || name == "server":
		case t.own.Tokenizer(name):
			t.give("random-rng", "vllm")
		default:
			t.note("the random prompts are others than those of vllm bench serve from the same seed: the tokenizer is not on this machine")
		}
	case "burstgpt":
		if !given("burstgpt-model") {
			t.give("burstgpt-model", "GPT-4")
		}
		if !given("request-rate") && !given("ramp-up-strategy") {
			t.give("request-rate", "inf")
		}
		fallthrough
	case "timed_trace", "custom", "hf": // of which perflab takes the whole file
		if !given("num-prompts") {
			t.give("num-prompts", "1000")
		}
	}
}

// api is the backend that the line chooses.
func (t *translation) api() string {
	endpoint := t.value("endpoint")
	switch named := cmp.Or(t.value("endpoint-type"), t.value("backend")); {
	case named != "":
		return named
	case strings.HasSuffix(endpoint, "/chat/completions"):
		return "openai-chat"
	case strings.HasSuffix(endpoint, "/completions") || endpoint == "" && t.serve:
		return "openai"
	case endpoint == "":
		return "openai-chat"
	}
	return endpoint
}

// completes reports whether the line asks for plain completions.
func (t *translation) completes() bool { return t.api() == "openai" || t.api() == "vllm" }

// pools reports whether the line's API gives whole answers: embeddings and scores.
func (t *translation) pools() bool {
	return strings.Contains(t.api(), "embeddings") || strings.Contains(t.api(), "pooling") || strings.Contains(t.api(), "rerank")
}

// leaveOut leaves a flag out whose meaning is elsewhere.
func leaveOut(t *translation, _ item) error { return nil }

// pass gives a flag as it is.
func (t *translation) pass(it item) error {
	t.give(it.name, it.values...)
	return nil
}

// needing makes a flag without effect where none of others is given, as in vLLM.
func needing(others ...string) func(*translation, item) error {
	return func(t *translation, it item) error {
		if t.has(others...) || !t.serve {
			return t.pass(it)
		}
		t.note("--%s has no effect without --%s, as in vllm bench serve", it.name, others[0])
		return nil
	}
}

// refusedUnless refuses a flag but with the value that asks for nothing.
func refusedUnless(values ...string) func(*translation, item) error {
	return func(t *translation, it item) error {
		if len(it.values) == 1 && slices.Contains(values, it.values[0]) {
			return nil
		}
		r, _ := rowOf(it.name)
		return fmt.Errorf("there is no --%s here: %s", it.name, r.Note)
	}
}

func (t *translation) backend(it item) error {
	if it.name == "backend" && t.has("endpoint-type") {
		return nil
	}
	for _, v := range it.values {
		c, _ := choiceOf(Backends(), v)
		switch c.State {
		case Refused:
			return fmt.Errorf("there is no --backend %s here: %s", v, c.Note)
		case Differs:
			v = strings.TrimPrefix(c.Ours, "--backend ")
		}
		t.give("backend", v)
	}
	return nil
}

func unlessURL(t *translation, it item) error {
	if t.serve && t.has("base-url") {
		return nil // which vLLM prefers
	}
	return t.pass(it)
}

// sampled gives a sampling parameter, which answers that are whole do not have.
func (t *translation) sampled(it item) error {
	if t.serve && t.pools() {
		t.note("--%s has no effect with --backend %s, as in vllm bench serve", it.name, t.api())
		return nil
	}
	return t.pass(it)
}

func logprobs(t *translation, it item) error {
	if !t.completes() {
		t.note("--logprobs has no effect with --backend %s, as in vllm bench serve", t.api())
		return nil
	}
	n, err := strconv.Atoi(strings.Join(it.values, " "))
	if err != nil {
		return fmt.Errorf("--logprobs %q is no whole number", strings.Join(it.values, " "))
	}
	if t.extra == nil {
		t.extra = map[string]json.RawMessage{}
	}
	t.extra["logprobs"] = json.RawMessage(strconv.Itoa(n))
	return nil
}

func tokenizerMode(t *translation, it item) error {
	if mode := t.value(it.name); !slices.Contains([]string{"auto", "hf", "slow"}, mode) {
		t.note("--tokenizer-mode %s: a tokenizer.json is read whatever the mode; other forms of a tokenizer are not", mode)
	}
	return nil
}

// burstiness has an effect with a rate alone; 1 has none at all.
func burstiness(t *translation, it item) error {
	rate := cmp.Or(t.value("request-rate"), "inf")
	if rate != "inf" || t.has("ramp-up-strategy", "steps", "sweep", "find-max", "sweep-request-rate") {
		return t.pass(it)
	}
	if v, err := strconv.ParseFloat(t.value(it.name), 64); err == nil && v == 1 {
		return nil
	}
	if !t.serve {
		return t.pass(it)
	}
	t.note("--burstiness has no effect with --request-rate inf, as in vllm bench serve")
	return nil
}

// ownRate gives the rate, which a trace that keeps its own times does not have.
func ownRate(t *translation, it item) error {
	if t.data == "timed_trace" && !t.has("no-self-timed") {
		t.note("--request-rate has no effect with the trace's own times, as in vllm bench serve: --no-self-timed replaces them")
		return nil
	}
	return t.pass(it)
}

// sections translates the names that vLLM has for others of perflab's.
func sections(t *translation, it item) error {
	names := map[string]string{"client_queue_time": "queue", "e2el_including_client_queue": "e2el_due"}
	for _, v := range it.values {
		list := strings.Split(v, ",")
		for i, name := range list {
			name = strings.TrimSpace(name)
			list[i] = cmp.Or(names[name], name)
		}
		t.give(it.name, strings.Join(list, ","))
	}
	return nil
}

// saved gives a flag of the result file, without which it says nothing but,
// for a plot, its name.
func saved(t *translation, it item) error {
	switch {
	case t.has("save-result", "append-result"):
		return t.pass(it)
	case t.has("plot-timeline", "plot-dataset-stats"):
		return nil
	}
	return needing("save-result")(t, it)
}

// plotPage gives the name of the page that stands for vLLM's plots.
func plotPage(t *translation, _ item) error {
	if t.has("html") || slices.ContainsFunc(t.out, func(a string) bool { return strings.HasPrefix(a, "--html=") }) {
		return nil
	}
	name := t.value("result-filename")
	if name == "" {
		rate := cmp.Or(t.value("request-rate"), "inf")
		if f, err := strconv.ParseFloat(rate, 64); err == nil && rate != "inf" && !strings.Contains(rate, ".") {
			rate = strconv.FormatFloat(f, 'f', 1, 64) // as Python writes it
		}
		limit := ""
		if n := t.value("max-concurrency"); n != "" {
			limit = "-concurrency" + n
		}
		model := path.Base(cmp.Or(t.value("model"), t.value("served-model-name"), "model"))
		name = fmt.Sprintf("%s-%sqps%s-%s-%s", cmp.Or(t.value("label"), t.api()), rate, limit, model, t.own.Stamp)
	} else if ext := path.Ext(name); ext != "" {
		name = strings.TrimSuffix(name, ext)
	}
	t.give("html", path.Join(t.value("result-dir"), strings.ReplaceAll(name, "/", "_")+".timeline.html"))
	return nil
}

func numRuns(t *translation, it item) error {
	if v := t.value(it.name); v != "1" {
		t.give("repeat", v)
	}
	return nil
}

func resetCache(t *translation, _ item) error { return nil } // finish gives the policy

func randomIDs(t *translation, _ item) error {
	t.give("random-ids")
	return nil
}

// sweep gives a series of loads, which ascend in perflab's table whatever their order.
func sweep(axis string) func(*translation, item) error {
	return func(t *translation, it item) error {
		var loads []float64
		for part := range strings.SplitSeq(t.value(it.name), ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			switch {
			case err != nil || math.IsNaN(v):
				return fmt.Errorf("--%s has %q: write numbers such as 1,2,4", it.name, part)
			case math.IsInf(v, 0):
				return fmt.Errorf("--%s has inf, and the loads of --sweep are numbers: --sweep rate=auto measures all requests at once, one at a time, and rates between", it.name)
			}
			loads = append(loads, v)
		}
		slices.Sort(loads)
		var texts []string
		for _, v := range slices.Compact(loads) {
			texts = append(texts, strconv.FormatFloat(v, 'f', -1, 64))
		}
		t.give("sweep", axis+"="+strings.Join(texts, ","))
		return nil
	}
}
