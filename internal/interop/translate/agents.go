package translate

// agentForms are aiperf's types of files that are sessions of agents here.
var agentForms = map[string]bool{"weka_trace": true, "tracelab": true}

// ofConversations is said of flags that make conversations of made-up texts.
const ofConversations = "is of conversations: give --dataset-name conversations, --turns and --think-time of perflab bench by hand"

// aiperfSessions are the flags of recorded sessions.
func aiperfSessions() []row {
	return []row{
		{flags: "--conversation-num|--num-conversations|--num-sessions", to: "--num-prompts, of weka_trace and tracelab", fact: "sessions"},
		{flags: "--inter-turn-delay-cap-seconds", to: "--max-idle, of weka_trace and tracelab", fact: "idle"},
		{flags: "--trace-idle-gap-cap-seconds", to: "--max-idle, of weka_trace and tracelab", fact: "gap"},
		{flags: "--no-fixed-schedule", to: "not needed, of weka_trace and tracelab", fact: "unfixed", bare: true},
		{flags: "--session-header", to: "--session-header, of weka_trace and tracelab", fact: "session-header"},
		{flags: "--num-dataset-entries|--num-prompts", to: "not needed, of other datasets than weka_trace and tracelab", fact: "entries"},
		{flags: "--prompt-input-tokens-block-size|--synthetic-input-tokens-block-size|--isl-block-size", to: "not needed, of tracelab 64", fact: "block"},
	}
}

// ofAgents reports whether the file has sessions of agents.
func ofAgents(d *draft) bool { return d.facts["data"] != "" && agentForms[d.facts["format"]] }

// aiperfAgents says what is sent of recorded sessions.
func (d *draft) aiperfAgents() {
	d.set("--dataset-name", "agents")
	d.set("--dataset-path", d.facts["data"])
	d.put("--disable-shuffle", "", true)
	for _, fact := range []string{"idle", "gap"} {
		if s, ok := d.number(fact); ok && s > 0 && (fact == "idle" || d.facts["idle"] == "") {
			d.set("--max-idle", short(s)+"s")
		}
	}
	if d.facts["gap"] != "" {
		d.note(d.of("gap"), "aiperf shortens the gaps between any two requests of a session, its agents' included; perflab each idle time")
	}
	if d.facts["format"] == "tracelab" && d.facts["unfixed"] == "" || d.facts["fixed"] != "" {
		d.note("no --no-fixed-schedule", "aiperf then begins the sessions at their recorded times, and keeps these within them; perflab begins one when another has ended, and waits for answers and idle times")
	}
	if name := d.facts["session-header"]; name != "" {
		d.set("--session-header", name)
	}
	d.note("--custom-dataset-type "+d.facts["format"], "aiperf sends a prompt as messages, whose tokens the joins between them change, and each agent as a session of its own; perflab as one text, and all agents of a session to one server")
	if d.facts["entries"] != "" {
		d.refuse(d.of("entries"), "takes the first sessions of a file: write these to a file of their own")
	}
	if b, ok := d.number("block"); ok && b != 64 && d.facts["format"] == "tracelab" {
		d.refuse(d.of("block"), "makes blocks of another length of what was found in the cache: perflab's have 64 tokens")
	}
}

// aiperfSessionLoad says how many sessions are sent, and how many at once.
func (d *draft) aiperfSessionLoad() {
	rates, streams := d.list("rate"), d.list("concurrency")
	if len(rates) == 0 && len(streams) == 0 {
		streams = []string{"1"}
		d.note("no --concurrency", "aiperf then has one session under way")
	}
	if len(rates) > 0 {
		d.refuse(d.of("rate"), "is of requests in aiperf and of sessions in perflab: give --concurrency")
	}
	d.along("concurrency", "--max-concurrency", streams)
	if d.facts["requests"] != "" {
		d.refuse(d.of("requests"), "ends in the middle of sessions, which perflab counts as a whole: give --num-sessions or --benchmark-duration")
	} else if !d.until("sessions", "seconds") {
		d.refuse("no --num-sessions", "lets aiperf end after some requests, in the middle of sessions: add --num-sessions or --benchmark-duration")
	}
}

// aiperfMadeUp refuses or explains flags of sessions where there are none.
func (d *draft) aiperfMadeUp() {
	for _, fact := range []string{"sessions", "idle", "gap"} {
		if v, ok := d.number(fact); d.facts[fact] != "" && (!ok || v != 0) {
			d.refuse(d.of(fact), ofConversations)
		}
	}
	if d.facts["unfixed"] != "" {
		d.refuse(d.of("unfixed"), byHand)
	}
	if d.facts["session-header"] != "" {
		d.refuse(d.of("session-header"), ofConversations)
	}
	if d.facts["entries"] != "" {
		d.note(d.of("entries"), "is how many prompts there are to repeat; perflab makes a new prompt for each request")
	}
	if d.facts["block"] != "" {
		d.note(d.of("block"), "is of texts to cut prompts from; perflab's are made up")
	}
}
