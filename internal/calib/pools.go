package calib

import (
	"fmt"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/sim"
)

// Names of what holds a replica back whose engines compute prompts or generate: a pool
// that is short of engines, or what is between them.
const (
	PrefillEngines = "prefill_engines"
	DecodeEngines  = "decode_engines"
	KVTransfer     = "kv_transfer"
)

// poolShare is from which share of the time on that a pool, or the links, work they are
// what is short. Decode engines work whenever a request is there: that says nothing.
const poolShare = 0.75

// disaggregated names the pool of a replica that is short, or the links between the pools:
// prefill engines that hardly rest, links that hardly rest, else the decode engines, with
// what holds those back.
func (r *loadedRun) disaggregated() Bottleneck {
	p, cfg := r.stats.Pools, r.config
	of := func(seconds float64, n int) float64 { return seconds / (float64(max(1, n)) * p.Elapsed.Seconds()) }
	computing := of(p.Prefill.Busy.Seconds(), p.Prefills)
	links := of(p.Moving.Seconds(), min(p.Egress, p.Ingress))
	perTransfer := func(seconds float64) float64 { return 1e3 * seconds / float64(max(1, p.Transfers)) }
	wait, room := perTransfer(p.LinkWait.Seconds()), perTransfer(p.RoomWait.Seconds())
	queue := of(p.Prefill.WaitingTime.Seconds(), p.Prefills)

	prefill := fmt.Sprintf("the prefill engines compute for %.0f %%", 100*computing)
	moving := fmt.Sprintf("the links between the engines are in use for %.0f %%", 100*links)
	switch {
	case links >= poolShare && links > computing:
		return Bottleneck{KVTransfer, links, fmt.Sprintf("The transfer of KV caches: %s of the time and a request waits %.0f ms for one, while %s. %s.", moving, wait, prefill, r.helpTransfer())}
	case computing >= poolShare:
		return Bottleneck{PrefillEngines, computing, fmt.Sprintf("The prefill engines: they compute for %.0f %% of the time and %.1f requests wait for each, while a request waits %.0f ms for room in a decode engine and %s. More of them for each decode engine (disaggregation) help, or a larger tp. %s",
			100*computing, queue, room, moving, r.inside(*cfg.Prefill, p.Prefill))}
	}
	working := of(p.Decode.Busy.Seconds(), p.Decodes)
	return Bottleneck{DecodeEngines, working, fmt.Sprintf("The decode engines: they work for %.0f %% of the time and a request waits %.0f ms for room in one, while %s and %s. More of them for each prefill engine (disaggregation) help, or a larger tp. %s",
		100*working, room, prefill, moving, r.inside(cfg, p.Decode))}
}

// inside says what holds the engines of one pool back.
func (r *loadedRun) inside(cfg engine.Config, s sim.Stats) string {
	cfg.Prefills, cfg.Decodes, cfg.Prefill = 0, 0, nil
	one := loadedRun{config: cfg, stats: s, frontEndRate: r.frontEndRate}
	return "In these engines: " + lower(one.bottleneck().Text)
}

// helpTransfer says what to try against slow transfers.
func (r *loadedRun) helpTransfer() string {
	cfg := r.config
	var try []string
	if cfg.KVBytes == 2 {
		try = append(try, "an FP8 KV cache (kv_cache_dtype=fp8) halves what moves")
	}
	if g := cfg.GPU; cfg.GPUs > g.LinkDevices && g.LinkDevices > 1 {
		try = append(try, fmt.Sprintf("a replica of at most %d GPUs moves it over their link instead of the network", g.LinkDevices))
	}
	if cfg.Prefix {
		try = append(try, "what the prefix cache of the decode engine holds does not move")
	}
	return sentence(strings.Join(append(try, "whole engines (disaggregation=none) move nothing"), ", "))
}

// lower begins s with a small letter.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
