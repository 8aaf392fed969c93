package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/source"
	"perflab/internal/test/browser"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/launch"
)

// A race of few launches of simulated engines over HTTP. The device is a slow one, so that a machine that is busy
// makes no load void, and each can be seen.
const liveStudy = `name: live
title: Three configurations of Qwen3-8B
model: Qwen/Qwen3-8B
hardware: {gpu: gb10, gpus: 1}
objective: {metric: total_token_throughput, slos: [p99_ttft_ms <= 5000]}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 24, random_input_len: 128, random_output_len: 16, max_concurrency: 8}
baseline: {label: vLLM, engine: vllm}
stages:
  - name: engine
    try:
      - {label: SGLang, engine: sglang}
  - name: precision
    try:
      - {label: FP8, model: Qwen/Qwen3-8B-FP8}
budget: {trials: 7}
bench: {num_warmups: 0, telemetry_interval_s: 0.2}
runtime: {kind: simulated, startup_s: 1}
`

// TestLive: a study of simulated engines over HTTP is launched from a browser, followed, stopped, resumed,
// read to its end and published, without a page that is loaded again by hand.
func TestLive(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing can be launched on Windows")
	}
	t.Parallel()
	b := browser.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	lab := webtest.Open(t, web.Options{Roots: []string{root}, Program: self, Env: append(os.Environ(), "PERFLAB_TEST_MAIN=1")})
	p := b.Open(t, lab.URL+"/launch/study", browser.View{Width: 1280})
	p.Wait(`document.documentElement.hasAttribute("data-ready")`)
	text, err := json.Marshal(liveStudy)
	if err != nil {
		t.Fatal(err)
	}
	browser.Eval[bool](p, `(() => { const t = document.querySelector("textarea[name=study]"); t.value = `+string(text)+`; t.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
	p.Click("button[name=do][value=start]")
	p.Wait(`/^.launch.\d{8}/.test(location.pathname)`)
	l := lab.Queue().List()[0]
	t.Cleanup(func() { endLaunch(t, lab.Queue(), l.ID) })
	p = b.Open(t, lab.URL+"/study/"+l.ID, browser.View{Width: 1280})
	ended := func() int {
		s, err := source.Standing(l.Dir)
		if err != nil { // it has not begun
			return 0
		}
		return s.Ended
	}
	for n := range 2 {
		until(t, "a launch to end", func() bool { return ended() > n })
	}
	p.Wait(`document.querySelectorAll("#trials tbody tr").length >= 2`)
	p.Wait(`document.querySelector("[data-live-log]")?.textContent.includes("SIMULATED")`)
	p.Wait(`document.querySelector("figure[data-name=engine] canvas")`)
	p.Wait(`document.querySelector("#race")?.textContent.includes("FP8")`)
	p.Picture("study-live")

	p.Click("text=Stop")
	p.Wait(`document.querySelector("#state .tag")?.textContent === "stopped"`)
	kept := ended()
	p.Click("text=Go on")
	p.Wait(`["queued", "starting", "running", "finished"].includes(document.querySelector("#state .tag")?.textContent)`)
	for at := kept; at >= 0; { // trial by trial, each of which is waited for
		until(t, "the next trial to end", func() bool {
			s, err := source.Standing(l.Dir)
			if err != nil || s.Ended == at && s.State != outcome.Finished {
				return false
			}
			if at = s.Ended; s.State == outcome.Finished {
				at = -1
			}
			return true
		})
	}
	p.Wait(`document.querySelector("#state .tag")?.textContent === "finished"`)
	p.Wait(`document.querySelector("#report")?.textContent.includes("Serving command")`)
	if kept < 2 || ended() < kept {
		t.Errorf("%d trials were kept of those before the stop, and there are %d", kept, ended())
	}
	if _, err := lab.Store().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = b.Open(t, lab.URL+"/study/"+l.ID, browser.View{Width: 1280})
	p.Wait(`document.documentElement.hasAttribute("data-ready")`)
	p.Click("text=Publish as a site")
	p.Wait(`location.pathname === "/sites" && document.querySelector("input[name=id]:checked")`)
	p.Type("input[name=name]", "published")
	p.Click("text=Publish")
	p.Wait(`document.querySelector("a[href^='/sites/view/']")`)
	until(t, "the site to be there", func() bool {
		_, err := os.Stat(filepath.Join(root, "sites", "published", "index.html"))
		return err == nil
	})
	page, err := lab.Guard().History("", 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, e := range page.Events {
		did = append(did, e.Action)
	}
	for _, want := range []string{"stop a study", "resume a study"} {
		if !slices.Contains(did, want) {
			t.Errorf("the audit log has %q, nothing of %q", did, want)
		}
	}
}

// endLaunch leaves no process of a launch behind where a test has failed.
func endLaunch(t *testing.T, q *launch.Queue, id string) {
	t.Helper()
	until(t, "the launch to end", func() bool {
		l, err := q.Get(id)
		switch {
		case err != nil || l.State == launch.Ended || l.State == launch.Cancelled:
			return true
		case l.State == launch.Queued:
			_, _ = q.Cancel(id, "test") // it may have begun just now: then it is stopped
		case len(l.Last().Stops) < 2:
			_, _ = q.Stop(id, "test")
		}
		return false
	})
}
