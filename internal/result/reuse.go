package result

import (
	"perflab/internal/gauge"
	"perflab/internal/reuse"
)

// rooms are what the replicas' caches hold, by target; none where one does not tell.
func (a *Analysis) rooms() []reuse.Room {
	tokens, blocks := a.Telemetry.Tracks(gauge.SourceEngine, "kv_tokens"), a.Telemetry.Tracks(gauge.SourceEngine, "kv_block")
	if len(tokens) != len(a.Header.Targets) || len(blocks) != len(tokens) {
		return nil
	}
	rooms := make([]reuse.Room, len(tokens))
	for i, k := range tokens {
		rooms[i] = reuse.Room{Tokens: int(k.Values[len(k.Values)-1]), Block: int(blocks[i].Values[len(blocks[i].Values)-1])}
	}
	return rooms
}

// addReuse sets what prefix caches could have had of the prompts, and what answers say of it.
func (a *Analysis) addReuse() {
	f := a.Figures
	a.setIf("cached_token_ratio", float64(a.CachedTokens)/float64(a.InputTokens), a.CachedTokens > 0 && a.InputTokens > 0)
	rooms, sum := a.rooms(), 0
	for _, r := range rooms {
		sum += r.Tokens
	}
	a.setIf("kv_cache_tokens", float64(sum), len(rooms) > 0)
	if len(a.Options.Prompts) == 0 || a.large != nil {
		return
	}
	requests := make([]reuse.Request, 0, len(a.Succeeded))
	for _, c := range a.Succeeded {
		r := reuse.Request{Index: c.Index, Target: c.Target, Sent: c.Sent, First: c.End, Last: c.End}
		r.Prompt, _ = c.Input()
		r.Output, _ = c.Output()
		if first, ok := c.FirstToken(); ok {
			r.First = first
			r.Last, _ = c.LastToken()
		}
		requests = append(requests, r)
	}
	h := reuse.Measure(a.Options.Prompts, requests, rooms)
	if h.Prompt == 0 {
		return
	}
	f["possible_prefix_hit_ratio"] = float64(h.Any) / float64(h.Prompt)
	a.setIf("routed_prefix_hit_ratio", float64(h.Routed)/float64(h.Prompt), h.Several)
	a.setIf("fitting_prefix_hit_ratio", float64(h.Fitting)/float64(h.Prompt), h.Fits)
}

// cacheScalars are the rows of the metric table of prefix caches.
func cacheScalars() []Metric {
	const absent = "; absent where it is not known what prompts share, and of runs of which not every call is held"
	row := func(name, label, doc, formula string) Metric {
		return Metric{Name: name, Label: label, Unit: "ratio", Section: sectionCache, Better: Higher, Decimals: 4, Doc: doc, Formula: formula}
	}
	return []Metric{
		{Name: "total_cached_tokens", Label: "Total cached input tokens", Unit: "tokens", Section: sectionCache,
			Doc:     "Prompt tokens of the successful calls that the server says it found in its prefix cache; absent when it tells of none.",
			Formula: "sum of cached tokens by usage"},
		row("cached_token_ratio", "Cached input tokens by usage", "Share of the prompt tokens that the server says, call by call, it found in its prefix cache; absent when it tells of none.", "sum of cached tokens by usage / sum of p"),
		row("fitting_prefix_hit_ratio", "Prefix cache hits possible with its room", "Share of the prompt tokens that prefix caches with the engine's own room, each for the requests that its replica got, would have found: what is asked for again before it had to make room"+absent+", and where the engine does not tell its room.", "hits of an LRU cache of the engine's blocks / sum of p"),
		row("routed_prefix_hit_ratio", "Prefix cache hits possible as routed", "As possible_prefix_hit_ratio, with a cache for each replica: what is less than that was sent to another replica than the one that had it"+absent+", and with one replica.", "hits of caches without limit by replica / sum of p"),
		row("possible_prefix_hit_ratio", "Prefix cache hits possible", "Share of the prompt tokens that a prefix cache with room for everything, common to all replicas, would have found: what whole blocks of a prompt have in common with prompts sent before"+absent+".", "hits of one cache without limit / sum of p"),
		{Name: "kv_cache_tokens", Label: "Room of the KV cache", Unit: "tokens", Section: sectionTelemetry,
			Doc: "Tokens that the KV caches of all replicas hold, by the engine's own metrics; absent where it does not tell.", Formula: "sum over replicas of kv_tokens"},
	}
}
