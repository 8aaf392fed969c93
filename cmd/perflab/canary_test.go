package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// canaries are the places where a secret can come in. Each gets a value of its own,
// which must come out nowhere.
var canaries = []string{
	"env OPENAI_API_KEY", "env MY_API_TOKEN", "env HTTPS_PROXY", "env DATABASE_URL", "env PGPASS", "env KEYFILE_B64",
	"flag --header Authorization", "flag --header X-Innocent", "flag --extra-body", "flag --metadata", "flag --label", "flag --endpoint", "flag --base-url", "flag --push", "flag --command",
	"study engines.env name", "study engines.env URL", "study engines.flags", "study engines.file", "study comment", "study title",
	"engine log", "engine usage error", "server error", "imported text", "imported JSON", "flag --otlp", "env OTEL_EXPORTER_OTLP_HEADERS",
}

// canary is the value for a place: letters and digits, so that it is the same in JSON, HTML and URLs.
func canary(place string) string {
	i := slices.Index(canaries, place)
	if i < 0 {
		panic(place)
	}
	return fmt.Sprintf("Canary%02dqZ7xK4mV9tR2", i)
}

// sightings are the places whose canary a text has, as it is or in base64.
func sightings(text string) (seen []string) {
	for _, place := range canaries {
		c := canary(place)
		forms := []string{c}
		for shift := range 3 {
			b := append(make([]byte, shift), c...)
			coded := base64.RawStdEncoding.EncodeToString(b)
			forms = append(forms, coded[(8*shift+5)/6:8*len(b)/6])
		}
		if slices.ContainsFunc(forms, func(f string) bool { return strings.Contains(text, f) }) {
			seen = append(seen, place)
		}
	}
	return seen
}

// canaryServer answers some requests, refuses others, and repeats what it was sent.
func canaryServer() *httptest.Server {
	var mu sync.Mutex
	n := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said := fmt.Sprintf("sent %v %s %s %s, started with --hf-token %s",
			r.Header, r.URL, body, base64.StdEncoding.EncodeToString([]byte("u:"+r.Header.Get("Authorization"))), canary("server error"))
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"object":"list","data":[{"id":"m"}]}`)
			return
		case "/health":
			return
		case "/v1/chat/completions":
		default:
			http.Error(w, said, http.StatusNotFound)
			return
		}
		mu.Lock()
		n++
		refuse := n%3 == 0
		mu.Unlock()
		if refuse {
			http.Error(w, said, http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, _ := json.Marshal(r.Header.Get("Authorization") + " " + r.Header.Get("X-Innocent"))
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\ndata: [DONE]\n\n", text)
	}))
}

const canaryStudy = `# measured with TOKEN_OF_MINE=%s
name: canary
title: "Bearer %s"
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1, check: off}
objective: {metric: output_throughput}
engines:
  vllm:
    env: [HF_TOKEN=%s, "HTTPS_PROXY=http://me:%s@127.0.0.1:1"]
    flags: [--api-key, %s]
  trtllm: {file: {env_overrides: {HF_TOKEN: %s}}}
strategy: survey
candidates:
  - {label: one, engine: vllm}
  - {label: two, engine: trtllm}
workloads: [{name: w, dataset_name: random, num_prompts: 6, random_input_len: 16, random_output_len: 4}]
bench: {num_warmups: 1, telemetry_interval_s: 0}
runtime: {kind: process, ready_timeout_s: 30}
`

// canaryEngine stands in for an engine: it prints its arguments and its environment, and
// then serves as a simulated one.
const canaryEngine = `#!/bin/sh
echo "args: $*"
env | grep -E 'Canary'
echo "loading with token=%s and postgres://u:%s@h/db"
case "$1" in serve) ;; *) echo "usage: vllm [-h]
vllm: error: unrecognized arguments: --hf-token %s $HF_TOKEN" >&2; exit 2;; esac
exec %s sim --gpu h100-sxm --startup 50ms -- vllm "$@"
`

// TestCanary puts a secret of its own into every place where one can come in, runs the
// commands, and looks for it in all that they write, print, or give to other processes.
func TestCanary(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("there is no /proc to look for arguments in")
	}
	server := canaryServer()
	defer server.Close()
	in, out := t.TempDir(), t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(in, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := canary("engine log")
	write("vllm", fmt.Sprintf(canaryEngine, log, log, canary("engine usage error"), self), 0o755)
	write("trtllm-serve", fmt.Sprintf(canaryEngine, log, log, canary("engine usage error"), self), 0o755)
	study := write("study.yaml", fmt.Sprintf(canaryStudy, canary("study comment"), canary("study title"), canary("study engines.env name"), canary("study engines.env URL"), canary("study engines.flags"), canary("study engines.file")), 0o600)
	report := write("report.md", "# Results\n\nHF_TOKEN="+canary("imported text")+" vllm serve Qwen/Qwen3-8B --api-key "+canary("imported text")+"\n\n```\n"+canaryBlock+"```\n", 0o600)
	result := write("result.json", `{"date":"20260101-000000","model_id":"m","label":"hf_`+canary("imported JSON")+`","api_key":"`+canary("imported JSON")+`","num_prompts":2,"completed":2,"duration":1,"request_throughput":2,"output_throughput":10,"total_token_throughput":20,"mean_ttft_ms":1,"median_ttft_ms":1,"p99_ttft_ms":1}`, 0o600)
	env := append(os.Environ(), "PERFLAB_TEST_MAIN=1", "PATH="+in+":"+os.Getenv("PATH"), "HOME="+in, "NO_PROXY=127.0.0.1",
		"OPENAI_API_KEY="+canary("env OPENAI_API_KEY"), "MY_API_TOKEN="+canary("env MY_API_TOKEN"), "PGPASS="+canary("env PGPASS"), "KEYFILE_B64="+canary("env KEYFILE_B64"),
		"HTTPS_PROXY=http://user:"+canary("env HTTPS_PROXY")+"@127.0.0.1:1", "DATABASE_URL=postgres://me:"+canary("env DATABASE_URL")+"@db/x",
		"OTEL_EXPORTER_OTLP_HEADERS=x-innocent="+canary("env OTEL_EXPORTER_OTLP_HEADERS"))
	run, saved := filepath.Join(out, "run"), filepath.Join(out, "saved")
	if err := os.Mkdir(saved, 0o755); err != nil {
		t.Fatal(err)
	}
	serve := "vllm serve Qwen/Qwen3-8B --api-key " + canary("flag --command")
	bench := []string{"bench", "--base-url", server.URL, "--model", "m", "--backend", "openai-chat", "--num-prompts", "9", "--num-warmups", "0", "--random-input-len", "8", "--random-output-len", "1", "--max-concurrency", "3"}
	for _, args := range [][]string{
		append(slices.Clone(bench), "--header", "Authorization=Bearer "+canary("flag --header Authorization"), "--header", "X-Innocent="+canary("flag --header X-Innocent"),
			"--extra-body", `{"api_key":"`+canary("flag --extra-body")+`"}`, "--metadata", "api_key="+canary("flag --metadata"), "--label", "token="+canary("flag --label"),
			"--save-result", "--save-detailed", "--result-dir", saved,
			"--out", run, "--html", filepath.Join(out, "run.html"), "--parquet", filepath.Join(out, "run.parquet")),
		append(slices.Clone(bench), "--repeat", "2", "--out", filepath.Join(out, "repeat")),
		{"bench", "--base-url", "http://u:" + canary("flag --base-url") + "@h/?key=" + canary("flag --base-url"), "--model", "m"},
		{"bench", "--base-url", server.URL, "--model", "m", "--push", "https://u:" + canary("flag --push") + "@h"},
		{"bench", "--base-url", server.URL, "--model", "m", "--endpoint", "/v1/chat/completions?key=" + canary("flag --endpoint")},
		{"bench", "--base-url", server.URL, "--model", "m", "--extra-body", `{"api_key":"` + canary("flag --extra-body") + `"`},
		append(slices.Clone(bench), "--otlp", server.URL, "--out", filepath.Join(out, "sent")), // which repeats what it was sent
		append(slices.Clone(bench), "--header", "X-Innocent="+canary("flag --header X-Innocent"), "--otlp", filepath.Join(out, "spans.jsonl"), "--out", filepath.Join(out, "traced")),
		{"bench", "--base-url", server.URL, "--model", "m", "--otlp", "http://u:" + canary("flag --otlp") + "@h/?key=" + canary("flag --otlp")},
		{"export", run, "--to", "otlp"},
		{"report", run, "--format", "md"},
		{"report", run, "--html", filepath.Join(out, "again.html")},
		{"compare", run, run, "--html", filepath.Join(out, "compare.html")},
		{"export", run, "--to", "csv"},
		{"audit", run, report, result},
		{"tune", study, "--out", filepath.Join(out, "study")},
		{"tune", study, "--check"},
		{"report", filepath.Join(out, "study")},
		{"render", study, "--out", filepath.Join(out, "script")},
		{"render", study, "--as", "compose", "--image", "a/b:v1", "--out", filepath.Join(out, "compose")},
		{"render", study, "--as", "slurm", "--out", filepath.Join(out, "slurm")},
		{"render", study, "--as", "kubernetes", "--image", "a/b:v1", "--out", filepath.Join(out, "kubernetes")},
		{"import", report, result, "--out", filepath.Join(out, "imported")},
		{"site", run, filepath.Join(out, "study"), filepath.Join(out, "repeat"), filepath.Join(out, "imported", "report"), filepath.Join(out, "imported", "result"), "--out", filepath.Join(out, "site")},
		{"audit", run, report, result, "--html", filepath.Join(out, "audit.html")},
		{"predict", "--gpu", "h100-sxm", "--command", serve, "--num-prompts", "4", "--out", filepath.Join(out, "predicted")},
		{"render", "--gpu", "h100-sxm", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--api-key", canary("flag --command")},
	} {
		runCanary(t, self, out, env, args)
	}
	checked := 0
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		checked++
		for _, place := range sightings(string(b) + path) {
			i := bytes.Index(b, []byte(canary(place)))
			t.Errorf("%s has the secret of %s: …%s…", strings.TrimPrefix(path, out), place, b[max(0, i-80):min(len(b), i+60)])
		}
		return err
	})
	if err != nil || checked < 40 {
		t.Errorf("%d files were looked at: %v", checked, err)
	}
	for _, name := range []string{"study/trials/001/logs/replica-0.log", "study/study.yaml", "run/header.json"} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || !bytes.Contains(b, []byte("[redacted]")) {
			t.Errorf("nothing was replaced in %s (%v): the secret did not come there\n%s", name, err, b)
		}
	}
}

// runCanary runs a command, and looks at what it prints and at the arguments of the processes that it starts.
func runCanary(t *testing.T, self, dir string, env, args []string) {
	t.Helper()
	cmd := exec.Command(self, args...)
	var text bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var listed []string
	var watch sync.WaitGroup
	own := strings.Join(append([]string{self}, args...), "\x00") + "\x00" // a child has it, too, before it becomes another program
	watch.Go(func() {
		for {
			all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, path := range all {
				if b, err := os.ReadFile(path); err == nil && string(b) != own && len(sightings(string(b))) > 0 {
					listed = append(listed, strings.ReplaceAll(string(b), "\x00", " "))
				}
			}
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	_ = cmd.Wait() // a run with refused requests does not end well
	close(done)
	watch.Wait()
	what := args[0] + " " + args[1]
	for _, place := range sightings(text.String()) {
		t.Errorf("%s prints the secret of %s:\n%s", what, place, text.String())
	}
	slices.Sort(listed)
	for _, line := range slices.Compact(listed) {
		t.Errorf("while %s runs ps shows %s", what, line)
	}
	if text.Len() == 0 {
		t.Errorf("%s prints nothing", what)
	}
}

const canaryBlock = `============ Serving Benchmark Result ============
Successful requests:                     2
Benchmark duration (s):                  1.00
Total input tokens:                      20
Total generated tokens:                  10
Request throughput (req/s):              2.00
Output token throughput (tok/s):         10.00
Total Token throughput (tok/s):          30.00
==================================================
`

// freeText are the flags of bench and the keys of a study file that hold text of the
// user's own and no secret that would be known as one by its name: files, names, forms.
// A new one is either added here, or gets a canary above.
var freeText = strings.Fields(`
	--base-url --host --backend --model --served-model-name --dataset-name --dataset-path --cache --nonce --tokenizer --lora-modules --lora-assignment
	--request-rate --arrival --steps --duration --ramp-up-strategy --scenario --random-rng --random-image-size --sharegpt-filter --result-dir --result-filename
	--burstgpt-model --hf-name --hf-subset --hf-split --turns --turn-input-len --turn-output-len --think-time --history --percentile-metrics --metric-percentiles --compat --telemetry --sweep --find-max
	--out --html --parquet --block --metrics-addr --goodput --slo --price-per-hour --telemetry-gpus --until-precision --until-metric`)

// TestCanaryPlaces: a flag of bench that takes text has a canary, or is known to hold none.
func TestCanaryPlaces(t *testing.T) {
	cmd := exec.Command(os.Args[0], "bench", "--help")
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1")
	help, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +(--[\w-]+) (?:string|strings|stringArray) `).FindAllStringSubmatch(string(help), -1) {
		if !slices.Contains(freeText, m[1]) && !slices.ContainsFunc(canaries, func(c string) bool { return strings.HasPrefix(c+" ", "flag "+m[1]+" ") }) {
			t.Errorf("bench %s takes text: put a canary into it, or list it as one that holds no secret", m[1])
		}
	}
}
