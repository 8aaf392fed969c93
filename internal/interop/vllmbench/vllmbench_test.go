package vllmbench_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/interop/vllmbench"
)

// own is a perflab bench with the flags that these tests need.
func own() vllmbench.Own {
	values := strings.Fields("label model backend base-url host port endpoint header metadata goodput lora-modules dataset-name dataset-path num-prompts " +
		"random-input-len random-output-len random-range-ratio random-prefix-len random-batch-size random-images random-image-size scenario output-len " +
		"sharegpt-output-len prefix-repetition-output-len request-rate burstiness max-concurrency seed cache num-warmups extra-body tokenizer random-rng " +
		"percentile-metrics repetition-penalty top-k repeat sweep html result-dir result-filename burstgpt-model ramp-up-strategy ramp-up-start-rps slo out temperature")
	switches := strings.Fields("save-result save-detailed append-result ignore-eos insecure disable-shuffle no-oversample random-ids profile")
	return vllmbench.Own{
		Flag: func(name string) (bool, bool) {
			v := slices.Contains(values, name)
			return v || slices.Contains(switches, name), v
		},
		Tokenizer: func(name string) bool { return name == "dir" },
		Datasets:  strings.Fields("random sharegpt azure mooncake burstgpt jsonl prefix_repetition"), Stamp: "STAMP",
	}
}

// TestTranslate has lines without the word serve: nothing is added to them.
func TestTranslate(t *testing.T) {
	for _, x := range []struct{ name, args, want, note string }{
		{name: "several values", args: "--goodput ttft:500 tpot:50 --metadata a=1 b=2 --model m", want: "--goodput=ttft:500 --goodput=tpot:50 --metadata=a=1 --metadata=b=2 --model=m"},
		{name: "several values, then a word", args: "--lora-modules a b --model m", want: "--lora-modules=a --lora-modules=b --model=m"},
		{name: "no value", args: "--header --model m", want: "--model=m"},
		{name: "as own", args: "--slo ttft<=5 --out dir --model=m", want: "--slo=ttft<=5 --out=dir --model=m"},
		{name: "underscores", args: "--random_input_len 5 --dataset-name=prefix_repetition", want: "--random-input-len=5 --dataset-name=prefix_repetition"},
		{name: "cut short", args: "--max-conc 3", want: "--max-concurrency=3", note: "--max-conc is read as --max-concurrency"},
		{name: "cut too short", args: "--random 3", want: "3 --random"},
		{name: "a value that looks like a flag", args: "--label --disable-tqdm", want: "--label=--disable-tqdm"},
		{name: "negative", args: "--metadata -1 --seed -1", want: "--metadata=-1 --seed=-1"},
		{name: "without effect", args: "--disable-tqdm --trust-remote-code --skip-chat-template --no-stream --skip-tokenizer-init --tokenizer-mode auto", want: ""},
		{name: "mode", args: "--tokenizer-mode mistral", want: "", note: "--tokenizer-mode mistral: a tokenizer.json is read whatever the mode"},
		{name: "id", args: "--request-id-prefix x-", want: "", note: "--request-id-prefix: requests carry no id"},
		{name: "nothing to shuffle", args: "--disable-shuffle --no-oversample", want: ""},
		{name: "something to shuffle", args: "--dataset-name sharegpt --disable-shuffle", want: "--dataset-name=sharegpt --disable-shuffle"},
		{name: "all lengths", args: "--input-len 5 --output-len 6 --random-input-len 7", want: "--random-input-len=5 --random-output-len=6"},
		{name: "length of answers", args: "--dataset-name sharegpt --output-len 6 --input-len 5", want: "--dataset-name=sharegpt --sharegpt-output-len=6", note: "--input-len has no effect with --dataset-name sharegpt"},
		{name: "length of jsonl", args: "--dataset-name jsonl --output-len 6", want: "--dataset-name=jsonl --output-len=6"},
		{name: "own dataset", args: "--dataset-name azure --random-input-len 6", want: "--dataset-name=azure --random-input-len=6"},
		{name: "two ratios", args: `--random-range-ratio {"input":0.5,"output":0.25} --random-input-len 10 --random-output-len 5`, want: "--scenario=U(5,15)/(3,7)"},
		{name: "one ratio", args: "--random-range-ratio 0.5 --random-input-len 10", want: "--random-range-ratio=0.5 --random-input-len=10"},
		{name: "batches", args: "--backend openai-embeddings --random-batch-size 4 --random-input-len 10", want: "--backend=openai-embeddings --scenario=E(10) --num-prompts=250 --random-batch-size=4"},
		{name: "counted batches", args: "--backend openai-embeddings --random-batch-size 4 --num-prompts 10 --random-range-ratio 0.0", want: "--backend=openai-embeddings --scenario=E(1024) --random-batch-size=4 --num-prompts=3"},
		{name: "documents", args: "--backend vllm-rerank --dataset-name random-rerank --random-batch-size 5 --random-input-len 512 --num-prompts 10", want: "--backend=vllm-rerank --dataset-name=random --scenario=R(256,255) --random-batch-size=5 --num-prompts=2"},
		{name: "a document each", args: "--backend vllm-rerank --dataset-name random-rerank", want: "--backend=vllm-rerank --dataset-name=random --scenario=R(512,511) --random-batch-size=1 --num-prompts=1000"},
		{name: "as posts write it", args: "--random-input 2048 --random-output 1024 --num-prompt 3", want: "--random-input-len=2048 --random-output-len=1024 --num-prompts=3", note: "--random-input is read as --random-input-len"},
		{name: "a list in the body", args: "--extra-body.stop+ a --extra-body.stop+=b,c", want: `--extra-body={"stop":["a","b","c"]}`},
		{name: "images", args: "--dataset-name random-mm --random-mm-base-items-per-request 2 --random-mm-bucket-config {(256,512,1):1.0}", want: "--dataset-name=random --random-images=2 --random-image-size=512x256"},
		{name: "usual images", args: "--dataset-name random-mm", want: "--dataset-name=random --random-images=1 --random-image-size=256x256:0.5,1280x720:0.5"},
		{name: "bounded images", args: `--dataset-name random-mm --random-mm-base-items-per-request 9 --random-mm-limit-mm-per-prompt {"image":3,"video":0} --enable-multimodal-chat --random-mm-num-mm-items-range-ratio 0`,
			want: "--dataset-name=random --random-images=3 --random-image-size=256x256:0.5,1280x720:0.5"},
		{name: "trace", args: "--dataset-name timed_trace --timed-trace-chunk-hash-size 512 --timed-trace-sec-multiplier 0.001", want: "--dataset-name=mooncake"},
		{name: "trace without its times", args: "--dataset-name timed_trace --timed-trace-chunk-hash-size 512 --timed-trace-sec-multiplier 0.001 --no-self-timed", want: "--dataset-name=mooncake --request-rate=inf"},
		{name: "logprobs", args: `--backend vllm --logprobs 3 --extra-body {"a":1}`, want: `--backend=vllm --extra-body={"a":1,"logprobs":3}`},
		{name: "logprobs of chats", args: "--logprobs 3", want: "", note: "--logprobs has no effect with --backend openai-chat"},
		{name: "body", args: `--extra-body {"b":1,"a":2}`, want: `--extra-body={"b":1,"a":2}`},
		{name: "dotted", args: "--extra-body.chat_template_kwargs.enable_thinking false --extra-body.x=word", want: `--extra-body={"chat_template_kwargs":{"enable_thinking":false},"x":"word"}`},
		{name: "sections", args: "--percentile-metrics ttft,e2el_including_client_queue,client_queue_time", want: "--percentile-metrics=ttft,e2el_due,queue"},
		{name: "burstiness of nothing", args: "--burstiness 1.0 --request-rate inf", want: "--request-rate=inf"},
		{name: "burstiness", args: "--burstiness 0.5 --request-rate 3", want: "--burstiness=0.5 --request-rate=3"},
		{name: "plots", args: "--plot-timeline --plot-dataset-stats --save-result --result-dir d --result-filename x.json", want: "--html=d/x.timeline.html --save-result --result-dir=d --result-filename=x.json"},
		{name: "plots without a file", args: "--plot-timeline --result-dir d --request-rate 8 --max-concurrency 4 --model a/b", want: "--html=d/openai-chat-8.0qps-concurrency4-b-STAMP.timeline.html --request-rate=8 --max-concurrency=4 --model=a/b"},
		{name: "own page", args: "--plot-timeline --html h", want: "--html=h"},
		{name: "runs", args: "--num-runs 3 --reset-prefix-cache", want: "--repeat=3 --cache=reset"},
		{name: "one run", args: "--num-runs 1", want: ""},
		{name: "sweep", args: "--sweep-max-concurrency 10,1,10", want: "--sweep=concurrency=1,10"},
		{name: "older", args: "--backend vllm --endpoint-type openai-chat", want: "--backend=openai-chat"},
		{name: "infinity", args: "--backend infinity-embeddings", want: "--backend=openai-embeddings"},
		{name: "no probes", args: "--probe-request-rate 0", want: ""},
		{name: "unknown", args: "--no-such-flag word", want: "word --no-such-flag"},
		{name: "help", args: "--model m -h", want: "--help"},
		{name: "whole help", args: "--help=all", want: "--help=all"},
		{name: "words", args: "word --top-k 3 -- --goodput a b", want: "word --top-k=3 -- --goodput a b"},
	} {
		t.Run(x.name, func(t *testing.T) {
			line, err := vllmbench.Translate(strings.Fields(x.args), own())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Fields(x.want), line.Args, cmp.Transformer("joined", func(s []string) string { return strings.Join(s, " ") })); d != "" {
				t.Errorf("want -, got +:\n%s", d)
			}
			notes := strings.Join(line.Notes, "\n")
			if x.note == "" && notes != "" || !strings.Contains(notes, x.note) {
				t.Errorf("notes %q, want %q", notes, x.note)
			}
		})
	}
}

// TestTranslateServe has lines behind serve, which get vLLM's defaults and lose what does
// not apply.
func TestTranslateServe(t *testing.T) {
	const usual = " --seed=0 --num-warmups=0 --cache=shared --percentile-metrics=ttft,tpot,itl"
	for _, x := range []struct{ name, args, want, note string }{
		{name: "nothing", args: "", want: "--backend=openai" + usual + " --repetition-penalty=1"},
		{name: "chat", args: "--backend openai-chat --endpoint /v1/chat/completions", want: "--backend=openai-chat --endpoint=/v1/chat/completions" + usual},
		{name: "endpoint", args: "--endpoint /v1/chat/completions", want: "--endpoint=/v1/chat/completions" + usual},
		{name: "all given", args: "--seed 3 --num-warmups 2 --cache reset --percentile-metrics ttft --repetition-penalty 1.1 --backend vllm",
			want: "--seed=3 --num-warmups=2 --cache=reset --percentile-metrics=ttft --repetition-penalty=1.1 --backend=vllm"},
		{name: "absent tokenizer", args: "--tokenizer a/absent --backend openai-chat", want: "--tokenizer=a/absent --backend=openai-chat" + usual, note: "the tokenizer is not on this machine"},
		{name: "tokenizer", args: "--tokenizer dir --backend openai-chat", want: "--tokenizer=dir --backend=openai-chat" + usual + " --random-rng=vllm"},
		{name: "other dataset", args: "--backend openai-chat --dataset-name sharegpt --random-input-len 5", want: "--backend=openai-chat --dataset-name=sharegpt" + usual,
			note: "--random-input-len has no effect with --dataset-name sharegpt, as in vllm bench serve"},
		{name: "a list twice", args: "--backend openai-chat --header a=1 --header b=2 c=3", want: "--backend=openai-chat --header=b=2 --header=c=3" + usual, note: "--header is given more than once: the last counts"},
		{name: "no file", args: "--backend openai-chat --result-dir d", want: "--backend=openai-chat" + usual, note: "--result-dir has no effect without --save-result"},
		{name: "no ramp", args: "--backend openai-chat --ramp-up-start-rps 3", want: "--backend=openai-chat" + usual, note: "--ramp-up-start-rps has no effect without --ramp-up-strategy"},
		{name: "no rate", args: "--backend openai-chat --burstiness 2", want: "--backend=openai-chat" + usual, note: "--burstiness has no effect with --request-rate inf"},
		{name: "URL", args: "--backend openai-chat --base-url u --port 1", want: "--backend=openai-chat --base-url=u" + usual},
		{name: "trace", args: "--backend openai-chat --dataset-name burstgpt", want: "--backend=openai-chat --dataset-name=burstgpt" + usual + " --burstgpt-model=GPT-4 --request-rate=inf --num-prompts=1000"},
		{name: "embeddings", args: "--backend openai-embeddings --top-k 3", want: "--backend=openai-embeddings --seed=0 --num-warmups=0 --cache=shared --percentile-metrics=e2el",
			note: "--top-k has no effect with --backend openai-embeddings"},
		{name: "sweep", args: "--backend openai-chat --sweep-request-rate 1,2", want: "--backend=openai-chat --sweep=rate=1,2 --seed=0 --num-warmups=0 --cache=shared"},
		{name: "own dataset", args: "--backend openai-chat --dataset-name jsonl --output-len 3", want: "--backend=openai-chat --dataset-name=jsonl --output-len=3" + usual},
	} {
		t.Run(x.name, func(t *testing.T) {
			line, err := vllmbench.Translate(append([]string{"serve"}, strings.Fields(x.args)...), own())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(line.Args, " "); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
			notes := strings.Join(line.Notes, "\n")
			if x.note == "" && notes != "" || !strings.Contains(notes, x.note) {
				t.Errorf("notes %q, want %q", notes, x.note)
			}
		})
	}
}

// TestRefused has what ends a command, and the words that help.
func TestRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--probe-request-rate 2":     "run a second perflab bench",
		"--sweep-request-rate 1,inf": "--sweep rate=auto",
		"--sweep-request-rate 1,x":   "write numbers",
		"--goodput --top-k 3":        "--goodput needs a value",
		"--compare a b":              "perflab compare RUN RUN",
		"--dry-run":                  "--num-prompts 1",
		"--multi-turn":               "--dataset-name conversations",
		"--config f":                 "give its flags on the command line",
		"--dataset-name spec_bench":  "--dataset-name jsonl",
		"--dataset-name timed_trace": "--timed-trace-chunk-hash-size 16 here: traces are read in Mooncake's format",
		"--dataset-name random-mm --random-mm-bucket-config {(1,2,16):0.5}":    "a video of 16 frames",
		"--dataset-name random-mm --random-mm-bucket-config {256:1}":           "write it as {(256, 256, 1)",
		"--dataset-name random-mm --random-mm-num-mm-items-range-ratio 0.5":    "same number of images",
		`--dataset-name random-mm --random-mm-limit-mm-per-prompt {"image":0}`: "allows no image",
		"--backend openai-audio":                                "audio is not sent",
		"--logprobs":                                            "--logprobs needs a value",
		"--backend openai --logprobs x":                         "no whole number",
		"--random-batch-size 2":                                 "--backend openai-embeddings",
		`--random-range-ratio {"input":2}`:                      "for input: it must be at least 0 and below 1",
		`--random-range-ratio {"input"`:                         "write a number",
		"--dataset-name random-rerank --random-input-len 3":     "too short",
		"--dataset-name random-rerank --random-range-ratio 0.5": "documents have one length",
		"--dataset-name random-rerank --no-reranker":            "not compared",
		"--extra-body.a":                                        "it needs a value",
		"--max-model-len 5":                                     "lengths that fit",
	} {
		if _, err := vllmbench.Translate(strings.Fields(args), own()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestRows: every flag and value of vLLM's parsers has a row, once, and every row is of
// one; what is refused says why.
func TestRows(t *testing.T) {
	flags := map[string]bool{}
	values := map[string]bool{}
	for _, f := range slices.Concat(vllmbench.Python(), vllmbench.RustOnly(), vllmbench.Older()) {
		flags[f.Name] = true
		if f.Name == "dataset-name" || f.Name == "backend" {
			for _, c := range f.Choices {
				values[c] = true
			}
		}
	}
	if len(vllmbench.Python()) < 90 || len(vllmbench.RustOnly()) < 20 || len(values) < 20 {
		t.Fatalf("flags.json has %d and %d flags, %d values", len(vllmbench.Python()), len(vllmbench.RustOnly()), len(values))
	}
	seen := map[string]bool{}
	for _, r := range vllmbench.Rows() {
		if !flags[r.Name] {
			t.Errorf("--%s is no flag of vLLM %s", r.Name, vllmbench.Release())
		}
		if seen[r.Name] {
			t.Errorf("--%s has two rows", r.Name)
		}
		seen[r.Name] = true
		if r.Note == "" && (r.State == vllmbench.Refused || r.State == vllmbench.Accepted) {
			t.Errorf("--%s is %s without a reason", r.Name, r.State)
		}
	}
	for name := range flags {
		if !seen[name] {
			t.Errorf("--%s of vLLM %s has no row", name, vllmbench.Release())
		}
	}
	for _, c := range slices.Concat(vllmbench.Datasets(), vllmbench.Backends()) {
		if !values[c.Value] && c.Value != "speed-bench" {
			t.Errorf("%s is no value of vLLM %s", c.Value, vllmbench.Release())
		}
		delete(values, c.Value)
		if c.Note == "" && c.State == vllmbench.Refused {
			t.Errorf("%s is refused without a reason", c.Value)
		}
	}
	for v := range values {
		t.Errorf("value %s of vLLM %s has no row", v, vllmbench.Release())
	}
}

// FuzzTranslate: whatever stands on a line, what comes out of it is the same when it is
// read again, as nothing of vLLM's is left in it.
func FuzzTranslate(f *testing.F) {
	f.Add("serve\x00--goodput\x00ttft:5\x00tpot:6")
	f.Add("--extra-body.a.b\x00c\x00--extra-body\x00{}\x00--logprobs\x003")
	f.Add("--dataset-name\x00random-mm\x00--random-mm-bucket-config\x00{(1, 2, 1): 1e0}")
	f.Add("--random-range-ratio\x00{\"input\":0.5}\x00--\x00--x")
	f.Add("--=\x00--.\x00--a.=\x00-\x00-h")
	f.Fuzz(func(t *testing.T, args string) {
		line, err := vllmbench.Translate(strings.Split(args, "\x00"), own())
		if err != nil {
			return
		}
		again, err := vllmbench.Translate(line.Args, own())
		if err != nil {
			t.Skip() // a value that nobody has looked at yet
		}
		if d := cmp.Diff(line.Args, again.Args); d != "" && len(line.Args) > 0 && line.Args[0] != "serve" {
			t.Errorf("%q\nbecomes other flags when it is read again:\n%s", line.Args, d)
		}
	})
}
