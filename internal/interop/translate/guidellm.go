package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// guidellm is the client of the vLLM project. Up to 0.5 a flag has one value; in
// 0.8 most have keys, as --profile kind=constant,rate=10. Their rows are named
// "--profile rate=", and where the kind decides what a key means
// "--constraint kind=max_duration,seconds=".
func guidellm() *client {
	return &client{
		name: "guidellm", versions: "0.5.3 and 0.8.1", example: "guidellm benchmark",
		starts:   [][]string{{"guidellm", "benchmark", "run"}, {"guidellm", "benchmark"}, {"guidellm", "run"}},
		rows:     slices.Concat(guidellmServer(), guidellmLoad(), guidellmData(), guidellmRest()),
		settings: keyedSettings, finish: finishGuidellm,
	}
}

func guidellmServer() []row {
	return []row{
		{flags: "--target|--backend target=", to: "--base-url", fact: "target"},
		{flags: "--model|--backend model=", to: "--model", fact: "model"},
		{flags: "--request-type|--backend request_format=", to: "--backend", fact: "api"},
		{flags: "--backend|--backend-type|--backend kind=", fact: "client", to: "the same load"},
		{flags: "--backend api_key=", kind: unneeded, says: "perflab takes the key from the environment: set OPENAI_API_KEY"},
		{flags: "--backend timeout=", to: "--timeout-total", fact: "timeout"},
		{flags: "--backend verify=", to: "--insecure", fact: "verify"},
		{flags: "--backend stream=", kind: refused, unless: "true|True", says: "asks for answers in one piece, and perflab always streams: leave it out"},
		{flags: "--backend max_tokens=|--backend max_completion_tokens=", kind: refused, says: "limits answers for all data, and perflab has the limit with the dataset: give output_tokens"},
		{flags: "--backend timeout_connect=|--backend validate_backend=|--backend follow_redirects=|--backend http2=", kind: unneeded, says: "perflab speaks HTTP/1.1, and a request that cannot connect counts as failed"},
		{flags: "--backend-kwargs|--backend-args|--backend extras=|--request-formatter-kwargs", kind: refused, says: "changes what is sent in a way that is not read here: give --extra-body and --header of perflab bench by hand"},
	}
}

func guidellmLoad() []row {
	return []row{
		{flags: "--profile|--rate-type|--profile kind=", fact: "profile", to: "--arrival, --max-concurrency or --sweep"},
		{flags: "--rate|--profile rate=|--override profile.rate=", fact: "rate", to: "--request-rate, of a sweep --sweep-points"},
		{flags: "--profile streams=|--override profile.streams=", fact: "rate", to: "--max-concurrency"},
		{flags: "--profile max_concurrency=", fact: "cap", to: "--max-concurrency"},
		{flags: "--profile sweep_size=", fact: "rate", to: "--sweep-points"},
		{flags: "--profile strategy_type=", fact: "arrival", to: "--arrival"},
		{flags: "--rampup|--profile rampup_duration=", kind: refused, unless: "0|0.0", says: "raises the load over time before it stays: give --ramp-up-strategy or --steps of perflab bench by hand"},
		{flags: "--warmup|--warmup-percent|--cooldown|--cooldown-percent|--profile warmup=|--profile cooldown=", kind: unneeded, unless: "0|0.0|none",
			says: "cuts requests out of the figures; perflab sends 8 requests before the run (--num-warmups), keeps every call, and has figures of the steady part by their own names (mean_steady_ttft_ms)"},
		{flags: "--max-seconds|--constraint kind=max_duration,seconds=", to: "--duration", fact: "seconds",
			says: "guidellm cuts off what is in flight then; perflab sends nothing more and waits for the answers"},
		{flags: "--max-requests|--constraint kind=max_requests,count=|--constraint kind=min_requests,count=", to: "--num-prompts", fact: "requests"},
		{flags: "--max-errors|--max-error-rate|--max-global-error-rate|--constraint kind=max_errors,count=|--constraint kind=max_error_rate,rate=|--constraint kind=max_error_rate,window=|--constraint kind=max_global_error_rate,rate=|--constraint kind=max_global_error_rate,minimum=", kind: unneeded,
			says: "ends a bad run early; perflab makes the whole run, and its exit status is 1 when more than --max-error-rate of the calls failed"},
		{flags: "--over-saturation|--constraint kind=over_saturation", kind: unneeded, says: "ends a run that the server cannot follow; perflab makes the whole run, and a sweep says which of its loads was too much"},
		{flags: "--detect-saturation|--default-over-saturation", bare: true, kind: unneeded, says: "ends a run that the server cannot follow; perflab makes the whole run, and a sweep says which of its loads was too much"},
		{flags: "--constraint kind=max_duration,stopping_scope=|--constraint kind=max_requests,stopping_scope=", kind: unneeded, says: "every load of a perflab sweep has this end"},
		{flags: "--random-seed|--seed|--seed value=", to: "--seed", fact: "seed", says: "starts other random numbers in each client: the prompts are not the same"},
		{flags: "--seed kind=", kind: unneeded, unless: "static", says: "the seed of perflab is a number"},
		{flags: "--metrics slo.ttft_ms=", to: "--goodput ttft:", fact: "slo-ttft"},
		{flags: "--metrics slo.tpot_ms=", to: "--goodput tpot:", fact: "slo-tpot"},
		{flags: "--metrics slo.e2el_ms=", to: "--goodput e2el:", fact: "slo-e2el"},
	}
}

func guidellmData() []row {
	var rows []row
	for _, s := range []struct{ theirs, fact, to string }{
		{"prompt_tokens", "in", "--random-input-len"}, {"output_tokens", "out", "--random-output-len"},
	} {
		for _, k := range []struct{ key, fact, to string }{{"", "", s.to}, {"_stdev", "-sd", "--scenario N"}, {"_min", "-min", "--scenario U"}, {"_max", "-max", "--scenario U"}} {
			key := s.theirs + k.key + "="
			rows = append(rows, row{flags: "--data " + key + "|--data kind=synthetic_text," + key, to: k.to, fact: s.fact + k.fact})
		}
	}
	return append(rows,
		row{flags: "--data prefix_tokens=|--data kind=synthetic_text,prefix_tokens=", to: "--random-prefix-len", fact: "prefix"},
		row{flags: "--data prefix_count=|--data kind=synthetic_text,prefix_count=", to: "--prefix-repetition-num-prefixes", fact: "prefixes"},
		row{flags: "--data turns=|--data kind=synthetic_text,turns=", kind: refused, unless: "1",
			says: "makes conversations: give --dataset-name conversations of perflab bench by hand; its --num-prompts counts conversations, and not their turns"},
		row{flags: "--data kind=json_file,path=", to: "--dataset-path", fact: "data"},
		row{flags: "--data", to: "--dataset-path", fact: "data", many: true},
		row{flags: "--data samples=|--data-samples", kind: unneeded, unless: "-1", says: "bounds how many prompts there are to repeat; perflab makes a new prompt for each request"},
		row{flags: "--data source=", kind: unneeded, says: "names a text that prompts are cut from; perflab's are made up"},
		row{flags: "--data-args|--data-column-mapper|--data-preprocessor|--data-finalizer|--data-loader", kind: refused,
			says: `is of a dataset that perflab does not read: write its prompts to a file, {"prompt": "...", "output_tokens": 100} on each line, and give --dataset-name jsonl --dataset-path`},
		row{flags: "--data-sampler", kind: unneeded, says: "perflab shuffles the rows of a file unless --disable-shuffle is given"},
		row{flags: "--data-num-workers|--dataloader-kwargs", kind: unneeded, says: "perflab makes its prompts before they are due, without processes of their own"},
		row{flags: "--processor|--tokenizer|--tokenizer model=", kind: unneeded,
			says: "perflab counts answers by the server's usage and measures prompts by an approximation: give --tokenizer with a tokenizer.json, or --tokenizer server, for exact lengths"},
		row{flags: "--processor-args|--tokenizer kind=", kind: unneeded, says: "perflab's --tokenizer is a tokenizer.json or the server's own"},
	)
}

func guidellmRest() []row {
	return []row{
		{flags: "--scenario|-c|--config", fact: "scenario", to: "the flags of the scenario"},
		{flags: "--output-dir|--output-path", kind: unneeded, says: "perflab writes a run directory (--out); perflab export writes guidellm's report"},
		{flags: "--outputs|--output|--output kind=|--output path=", kind: unneeded, many: true, says: "perflab prints a block and keeps every call: --html writes a page, perflab export other clients' files"},
		{flags: "--disable-console|--disable-console-outputs|--disable-console-interactive|--disable-progress", bare: true, kind: unneeded, says: "perflab draws its live line on a terminal only"},
		{flags: "--sample-requests|--output-sampling|--metrics sample_size=", kind: unneeded, says: "perflab keeps the times of every call, and texts with --save-detailed"},
		{flags: "--metrics kind=", kind: unneeded, unless: "generative", says: "perflab has all its figures of every run"},
		{flags: "--metrics confidence=", kind: unneeded, says: "perflab's intervals are of 95 %"},
		{flags: "--metrics prefer_response_metrics=", kind: unneeded, unless: "true|True", says: "perflab counts tokens by the server's usage where it is sent"},
		{flags: "--label|-l", to: "--metadata"},
	}
}

// keyedFlags are those of 0.8 whose values have keys; of those that are true the
// kind decides what the keys mean.
var keyedFlags = map[string]bool{
	"--backend": false, "--profile": false, "--constraint": true, "--data": true, "--tokenizer": false, "--seed": false, "--output": false, "--metrics": false,
}

// keyedSettings are the settings with the values of keys taken apart.
func keyedSettings(c *client, words []string, d *draft) []setting {
	var joined []string
	for i := 0; i < len(words); i++ {
		if words[i] == "--override" && i+2 < len(words) { // two values
			joined = append(joined, "--override "+words[i+1]+"=", words[i+2])
			i += 2
			continue
		}
		joined = append(joined, words[i])
	}
	var out []setting
	for _, s := range overrides(c, joined, d) {
		byKind, keyed := keyedFlags[s.flag]
		pairs, ok := keys(s.value)
		if !keyed || !ok {
			out = append(out, s)
			continue
		}
		if kind := pairs["kind"]; s.flag == "--data" && kind != "" && kind != "synthetic_text" && kind != "json_file" {
			out = append(out, s) // of a kind that is refused whole
			continue
		}
		out = append(out, spread(s.flag, pairs, byKind)...)
	}
	return out
}

// overrides splits words as plainSettings does, where a flag may hold a blank and
// end in =.
func overrides(c *client, words []string, d *draft) []setting {
	var out []setting
	from := 0
	for i := 0; i+1 < len(words); i++ {
		if strings.HasPrefix(words[i], "--override ") {
			out = append(out, plainSettings(c, words[from:i], d)...)
			out = append(out, setting{words[i], words[i+1]})
			i++
			from = i + 1
		}
	}
	return append(out, plainSettings(c, words[from:], d)...)
}

// spread names the pairs of a value by their flag, in an order that is always the
// same.
func spread(flag string, pairs map[string]string, byKind bool) []setting {
	before := flag + " "
	if kind := pairs["kind"]; byKind && kind != "" {
		before += "kind=" + kind + ","
		if len(pairs) == 1 {
			return []setting{{flag + " kind=" + kind, ""}}
		}
		delete(pairs, "kind")
	}
	var out []setting
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, setting{before + key + "=", pairs[key]})
	}
	return out
}

// keys reads a value of the form key=value,key=value or an object of JSON; lists
// are joined by commas.
func keys(value string) (map[string]string, bool) {
	pairs := map[string]string{}
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		var object map[string]any
		if json.Unmarshal([]byte(value), &object) != nil {
			return nil, false
		}
		flatten(pairs, "", object)
		return pairs, len(pairs) > 0
	}
	for part := range strings.SplitSeq(value, ",") {
		key, v, ok := strings.Cut(part, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsAny(key, " /") {
			return nil, false
		}
		key, _, _ = strings.Cut(key, "[")
		key = strings.ReplaceAll(key, "-", "_")
		if earlier, twice := pairs[key]; twice {
			v = earlier + "," + v
		}
		pairs[key] = strings.TrimSpace(v)
	}
	return pairs, true
}

// flatten writes the members of an object as "outer.inner".
func flatten(into map[string]string, before string, object map[string]any) {
	for key, v := range object {
		key = before + strings.ReplaceAll(key, "-", "_")
		switch v := v.(type) {
		case map[string]any:
			flatten(into, key+".", v)
		case []any:
			var words []string
			for _, x := range v {
				words = append(words, fmt.Sprint(x))
			}
			into[key] = strings.Join(words, ",")
		case float64:
			into[key] = short(v)
		default:
			into[key] = fmt.Sprint(v)
		}
	}
}
