package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"perflab/internal/prometheus"
)

// ResetCache empties the server's prefix cache, so that a run does not find the
// prompts of the one before. It asks as vLLM or SGLang has it, by which of them
// the server's metrics name, and both ways where they name neither.
func (c *Client) ResetCache(ctx context.Context) error {
	const vllm, sglang = "/reset_prefix_cache", "/flush_cache"
	metrics, _, err := c.metrics(ctx)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	paths := []string{vllm, sglang}
	switch {
	case strings.Contains(metrics, "vllm:"):
		paths = paths[:1]
	case strings.Contains(metrics, "sglang:"):
		paths = paths[1:]
	}
	for _, path := range paths {
		a, err := c.ask(ctx, http.MethodPost, path, nil)
		if err != nil {
			return c.unreachable(ctx, err)
		}
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
			return c.resetAnswer(path, a)
		}
	}
	return &EndpointError{
		Text: fmt.Sprintf("%s has no %s: its prefix cache cannot be reset", c.root, strings.Join(paths, " and no ")),
		Do:   "start vLLM with VLLM_SERVER_DEV_MODE=1 in its environment, which alone gives it that endpoint; SGLang has /flush_cache by itself; for others restart the server, or use another seed",
	}
}

// resetAnswer judges what came of a reset: a server may say no, as SGLang does
// while requests run.
func (c *Client) resetAnswer(path string, a answer) error {
	var reply struct {
		Success *bool `json:"success"`
	}
	refused := json.Unmarshal(a.body, &reply) == nil && reply.Success != nil && !*reply.Success
	if a.status == http.StatusOK && !refused {
		return nil
	}
	e := &EndpointError{
		Text: fmt.Sprintf("%s%s did not reset the prefix cache (%d): %s", c.root, path, a.status, c.redact(clean([]byte(c.redact(string(a.body)))))),
		Do:   "wait until no request runs on the server, and let nobody else use it",
	}
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		e.Do = "give the server's administrator key in a header or in OPENAI_API_KEY"
	}
	return e
}

// counters are the names under which an engine counts what it looked up in its
// prefix cache and what it found there. Where queries is not a metric of its own
// it is hits plus misses.
type counters struct{ queries, hits, misses string }

// cacheCounters returns the names in use, the newest of each engine first.
func cacheCounters() []counters {
	return []counters{
		{queries: "vllm:prefix_cache_queries", hits: "vllm:prefix_cache_hits"},
		{queries: "vllm:gpu_prefix_cache_queries", hits: "vllm:gpu_prefix_cache_hits"},
		{queries: "sglang:prompt_tokens", hits: "sglang:cached_tokens"},
		{queries: "trtllm_prompt_tokens", hits: "trtllm_prompt_cached_tokens"},
		{misses: "trtllm_kv_cache_missed_blocks", hits: "trtllm_kv_cache_reused_blocks"}, // in blocks
	}
}

// CacheCounters returns how many prompt tokens the server has looked up in its
// prefix cache since its start and how many it found there, over all its
// engines. from is the metrics' names: of TensorRT-LLM's older ones the unit is
// the block. What a run found is the difference of two answers.
func (c *Client) CacheCounters(ctx context.Context) (queries, hits float64, from string, err error) {
	text, path, err := c.metrics(ctx)
	if err != nil {
		return 0, 0, "", c.unreachable(ctx, err)
	}
	sums := sumMetrics(text)
	for _, n := range cacheCounters() {
		hits, found := sums[n.hits]
		queries, ok := sums[n.queries]
		name := n.queries
		if n.misses != "" {
			missed, has := sums[n.misses]
			queries, ok, name = hits+missed, has && found, n.misses
		}
		switch {
		case !ok:
			continue
		case !found && n.hits != "sglang:cached_tokens": // which is there from the first hit on
			continue
		}
		return queries, hits, name + ", " + n.hits, nil
	}
	e := &EndpointError{
		Text: fmt.Sprintf("%s has no metrics of its prefix cache", c.root),
		Do:   "vLLM has them at /metrics by itself, SGLang with --enable-metrics; a gateway may hide them",
	}
	if path != "" {
		e.Text = fmt.Sprintf("%s%s has no counters of a prefix cache", c.root, path)
	}
	return 0, 0, "", e
}

// Metrics returns the page on which the engine publishes its state: Prometheus's
// text, or TensorRT-LLM's list of iterations where it has that alone.
func (c *Client) Metrics(ctx context.Context) (page string, err error) {
	list, refused := "", 0
	for _, path := range metricsPaths {
		a, err := c.get(ctx, path)
		switch {
		case err != nil:
			return "", c.unreachable(ctx, err)
		case a.status != http.StatusOK:
			refused = a.status
		case strings.HasPrefix(strings.TrimSpace(string(a.body)), "["):
			list = string(a.body)
		default:
			return string(a.body), nil
		}
	}
	if list != "" {
		return list, nil
	}
	return "", &EndpointError{
		Text: fmt.Sprintf("%s%s answers %d: the server publishes no metrics", c.root, metricsPaths[0], refused),
		Do:   "vLLM has them by itself, SGLang with --enable-metrics, llama-server with --metrics; a gateway may hide them",
	}
}

// metricsPaths are where engines publish their metrics; TensorRT-LLM keeps
// something else at the first.
var metricsPaths = []string{"/metrics", "/prometheus/metrics"}

// metrics returns the server's metrics as text and the path that had them;
// both are "" for a server without.
func (c *Client) metrics(ctx context.Context) (text, path string, err error) {
	for _, path := range metricsPaths {
		a, err := c.get(ctx, path)
		if err != nil {
			return "", "", err
		}
		if a.status == http.StatusOK && !strings.HasPrefix(strings.TrimSpace(string(a.body)), "[") {
			return string(a.body), path, nil
		}
	}
	return "", "", nil
}

// maxCounter bounds a sample: a larger one is no count.
const maxCounter = 1e18

// sumMetrics adds up the samples of each metric over its labels, under its name
// without _total. A sample that says it is itself a total of others is left
// out.
func sumMetrics(text string) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range prometheus.Parse(text, nil) {
		if s.Labels["cache_source"] != "total" && s.Value >= 0 && s.Value < maxCounter {
			sums[strings.TrimSuffix(s.Name, "_total")] += s.Value
		}
	}
	return sums
}
