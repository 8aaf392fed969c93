package translate

import (
	"strings"
)

// guidellmScenarios are the built-in ones, of 0.5.3: profile, then lengths.
var guidellmScenarios = map[string]map[string]string{
	"chat": {"profile": "sweep", "in": "512", "in-sd": "128", "in-min": "1", "in-max": "1024", "out": "256", "out-sd": "64", "out-min": "1", "out-max": "1024"},
	"rag":  {"profile": "sweep", "in": "4096", "in-sd": "512", "in-min": "2048", "in-max": "6144", "out": "512", "out-sd": "128", "out-min": "1", "out-max": "1024"},
}

// guidellmAPIs are perflab's backends by what guidellm calls the API.
var guidellmAPIs = map[string]string{
	"": "openai-chat", "chat_completions": "openai-chat", "/v1/chat/completions": "openai-chat",
	"completions": "openai", "text_completions": "openai", "/v1/completions": "openai",
	"responses": "openai-responses", "/v1/responses": "openai-responses",
}

// finishGuidellm makes flags of the facts.
func finishGuidellm(d *draft) {
	d.guidellmScenario()
	d.target("http://localhost:8000")
	d.model("guidellm")
	if backend, ok := guidellmAPIs[d.facts["api"]]; ok {
		d.set("--backend", backend)
	} else {
		d.refuse(d.of("api"), "is an API of which perflab makes no such load: chat_completions, completions and responses are translated")
	}
	if kind := d.facts["client"]; kind != "" && kind != "openai_http" {
		d.refuse(d.of("client"), "is no server behind HTTP: perflab loads those alone")
	}
	if v := d.facts["verify"]; strings.EqualFold(v, "false") {
		d.put("--insecure", "", true)
	} else if v == "" && strings.HasPrefix(d.facts["target"], "https:") {
		d.note("no --backend verify=", "guidellm accepts any TLS certificate; perflab only with --insecure")
	}
	if s, ok := d.number("timeout"); ok && s > 0 {
		d.set("--timeout-total", short(s)+"s")
	}
	if v, ok := d.number("seed"); ok {
		d.set("--seed", whole(v))
	}
	d.bounds("slo-ttft", "slo-tpot", "slo-e2el")
	d.guidellmData()
	d.guidellmLoad()
}

// guidellmScenario fills in what a built-in scenario says and no flag does.
func (d *draft) guidellmScenario() {
	name, ok := d.facts["scenario"]
	if !ok {
		return
	}
	known, ok := guidellmScenarios[name]
	if !ok {
		d.refuse(d.of("scenario"), "is a file or a scenario that is not read here: give its settings as flags")
		return
	}
	own := d.facts["in"] != "" || d.facts["data"] != ""
	for fact, value := range known {
		if _, given := d.facts[fact]; !given && (fact == "profile" || !own) {
			d.facts[fact], d.given[fact] = value, d.of("scenario")
		}
	}
}

// bounds joins what makes a request good, as facts named by their figure.
func (d *draft) bounds(facts ...string) {
	var parts []string
	for _, fact := range facts {
		if v, ok := d.number(fact); ok {
			_, figure, _ := strings.Cut(fact, "-")
			parts = append(parts, figure+":"+short(v))
		}
	}
	if len(parts) > 0 {
		d.set("--goodput", strings.Join(parts, ","))
	}
}

// guidellmData says what is sent.
func (d *draft) guidellmData() {
	if path, ok := d.facts["data"]; ok {
		if !strings.HasSuffix(path, ".jsonl") && !strings.HasSuffix(path, ".json") || strings.Contains(path, " ") {
			d.refuse(d.of("data"), `is data that perflab does not read: write its prompts to a file, {"prompt": "...", "output_tokens": 100} on each line, and give --dataset-name jsonl --dataset-path`)
			return
		}
		d.set("--dataset-name", "jsonl")
		d.set("--dataset-path", path)
		d.note(d.of("data"), `perflab reads {"prompt": "...", "output_tokens": 100} on each line: other columns must be renamed`)
		return
	}
	if d.facts["in"] == "" || d.facts["out"] == "" {
		d.refuse("--data", "must say prompt_tokens and output_tokens: add them, as in prompt_tokens=256,output_tokens=128")
		return
	}
	in, out := d.lengthsOf("in"), d.lengthsOf("out")
	prefix, _ := d.number("prefix")
	count, _ := d.number("prefixes")
	if prefix > 0 {
		d.prefixed(in, out, prefix, count)
		return
	}
	d.random(in, out)
}

// guidellmLoad says when requests are sent.
func (d *draft) guidellmLoad() {
	rates := d.list("rate")
	profile := d.facts["profile"]
	if profile == "" {
		profile = "sweep"
		d.given["profile"] = "no --profile"
	}
	switch profile {
	case "synchronous":
		d.set("--max-concurrency", "1")
	case "concurrent":
		d.need(rates, "how many requests are in flight")
		d.along("concurrency", "--max-concurrency", rates)
	case "throughput":
		d.throughput(rates)
	case "constant", "poisson", "async":
		if profile == "async" {
			profile = "constant"
		}
		d.need(rates, "the requests a second")
		d.set("--arrival", profile)
		d.along("rate", "--request-rate", rates)
		d.capped()
	case "sweep":
		d.guidellmSweep(rates)
	default:
		d.refuse(d.of("profile"), "is a profile that is not translated: synchronous, concurrent, throughput, constant, poisson and sweep are")
	}
	if !d.until("requests", "seconds") && d.facts["data"] == "" {
		d.note("no --max-seconds or --max-requests", "guidellm runs until it is stopped; perflab sends 1000 requests (--num-prompts, --duration)")
	}
}

// need refuses a profile without its numbers.
func (d *draft) need(rates []string, what string) {
	if d.facts["rate"] == "" {
		d.refuse(d.of("profile"), "does not say "+what+": add --rate")
	}
}

// capped gives a bound of requests in flight beside a rate.
func (d *draft) capped() {
	if v, ok := d.number("cap"); ok && v > 0 {
		d.set("--max-concurrency", whole(v))
	}
}

// guidellmCap is how many requests guidellm has in flight at most where nothing
// else is said (settings.max_concurrency of 0.5.3).
const guidellmCap = "512"

// throughput sends as fast as guidellm does without a rate.
func (d *draft) throughput(rates []string) {
	switch {
	case len(rates) > 1:
		d.refuse(d.of("rate"), "has several bounds for one load: give one")
	case len(rates) == 1:
		d.set("--max-concurrency", rates[0])
	case d.facts["cap"] != "":
		d.capped()
	default:
		d.set("--max-concurrency", guidellmCap)
		d.note(d.of("profile"), "guidellm has "+guidellmCap+" requests in flight at most")
	}
}

// guidellmSweep is a run with one request at a time, one with all at once, and
// rates between, in both clients.
func (d *draft) guidellmSweep(points []string) {
	d.set("--sweep", "rate=auto")
	switch len(points) {
	case 0:
		d.set("--sweep-points", "10")
	case 1:
		d.set("--sweep-points", points[0])
	default:
		d.refuse(d.of("rate"), "is the number of runs of a sweep: give one number")
	}
	arrival := d.facts["arrival"]
	if arrival == "" {
		arrival = "constant"
	}
	d.set("--arrival", arrival)
	if d.capped(); !d.has("--max-concurrency") {
		d.set("--max-concurrency", guidellmCap)
	}
	d.note(d.of("profile"), "makes a sweep, here as there: one request at a time, as many as the server takes ("+guidellmCap+" in flight at most), and rates between")
}
