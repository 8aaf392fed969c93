package candidate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/tune"
)

// mostMoves bounds what one run asks for.
const mostMoves = 4

// Thresholds of the table of moves.
const (
	roomKV     = 0.7   // mean use of the KV cache under which there is room for more requests
	fullKV     = 0.95  // peak use at which requests wait for it
	atLimit    = 0.9   // share of the limit of running requests from which it binds
	busyGPU    = 0.5   // utilisation from which a device is at work
	hotHost    = 0.85  // use of the processors from which they hold the engine up
	badGuess   = 0.4   // share of guesses accepted under which fewer should be made
	sureHit    = 0.8   // share above which more should be
	missedHits = 0.1   // share of prompt tokens that could have been found and were not, from which a larger cache is worth a launch
	leastBatch = 512   // tokens of a step, under which devices idle
	mostBatch  = 32768 // and over which activations take the memory
	crowd      = 64    // requests of a copy from which guessing costs more than it brings
)

// Moves are what the figures of a run ask for next, best first, at most four: a limit
// of latency that was missed first, then what requests wait for. Missed names the
// metrics whose SLO was missed. A figure that is missing asks for nothing.
//
// A server that its processors hold up has no move of its own but scheduling ahead:
// more clients and front ends are no parameters, and messages of several tokens would
// change what latencies mean.
func (f *Field) Moves(c tune.Config, figures map[string]float64, missed []string) []tune.Change {
	c = clean(c)
	p := f.resolve(c)
	if p.err != nil {
		return nil
	}
	m := &moves{f: f.rules, c: c, p: p, figures: figures, seen: map[string]bool{p.identity(c): true}}
	m.copies = 1
	if p.cfg.GPUs > 0 {
		m.copies = max(1, p.cfg.Replicas(f.o.GPUs))
	}
	switch p.cmd.Engine { // whose ranks have the limits each for itself
	case "vllm":
		m.copies *= max(1, p.cfg.DP)
	case "trtllm":
		m.copies *= max(1, p.cfg.AttentionDP)
	}
	m.copies *= max(1, p.cfg.Decodes) // whose figures they are
	gaps := about(missed, "itl", "tpot")
	m.pools()
	m.eager()
	if gaps {
		m.gaps()
	}
	m.memory()
	m.reuse()
	m.prompts(about(missed, "ttft", "ttfa"), gaps)
	if !gaps {
		m.limit()
	}
	m.graphs()
	m.acceptance()
	if about(missed, "e2el", "latency", "stream") {
		m.guess("requests take too long")
		m.wider("requests take too long")
	}
	m.host()
	return m.out[:min(len(m.out), mostMoves)]
}

// crowded is how many requests wait for an engine of a pool, on average, from which it is short.
const crowded = 1

// pools gives the pool that is short more of the engines, in a way that the study lists: where
// requests wait for one pool and not for the other.
func (m *moves) pools() {
	now := m.p.cmd.Pools()
	if !now.Split() {
		return
	}
	replicas := float64(max(1, m.p.cfg.Replicas(m.f.o.GPUs)))
	prefill, told := m.figure("mean_prefill_waiting_requests")
	decode, also := m.figure("mean_waiting_requests")
	prefill, decode = prefill/(replicas*float64(now.Prefills)), decode/(replicas*float64(now.Decodes))
	if !told || !also || (prefill >= crowded) == (decode >= crowded) {
		return
	}
	share := func(p engine.Pools) float64 { return float64(p.Prefills) / float64(p.Prefills+p.Decodes) }
	listed, _ := m.f.narrow(engine.Disaggregation)
	var next []engine.Pools
	for _, v := range listed {
		p, err := engine.ParsePools(v)
		if err == nil && p.Split() && (share(p) > share(now)) == (prefill >= crowded) && share(p) != share(now) {
			next = append(next, p)
		}
	}
	slices.SortStableFunc(next, func(a, b engine.Pools) int {
		return cmp.Compare(math.Abs(share(a)-share(now)), math.Abs(share(b)-share(now)))
	})
	why := fmt.Sprintf("%.1f requests wait for each prefill engine and %.1f for each decode engine", prefill, decode)
	for _, p := range next {
		m.try(tune.Config{engine.Disaggregation: p.String()}, why)
	}
}

// about reports whether a metric of one of the kinds is among those missed.
func about(missed []string, kinds ...string) bool {
	return slices.ContainsFunc(missed, func(metric string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(metric, kind) })
	})
}

// moves are collected without repetition.
type moves struct {
	f       *rules
	c       tune.Config
	p       plan
	figures map[string]float64
	copies  int // of the engine, over which what runs and waits is summed
	out     []tune.Change
	seen    map[string]bool
}

// figure is a figure, and whether there is one.
func (m *moves) figure(name string) (float64, bool) {
	v, ok := m.figures[name]
	return v, ok && !math.IsNaN(v)
}

// try adds a change that is allowed, not refused, and makes a difference.
func (m *moves) try(set tune.Config, why string) {
	next := with(m.c, set)
	q := m.f.resolve(next)
	if m.seen[q.identity(next)] || m.f.refusal(q) != "" {
		return
	}
	for name := range set {
		if !m.f.allowed(name, set[name]) || !m.p.changes(q, name, m.c, next) {
			return
		}
	}
	m.seen[q.identity(next)] = true
	m.out = append(m.out, tune.Change{Label: m.f.saidAll(m.c, set), Set: set, Why: why})
}

// number tries a number for a parameter, or the nearest in its direction that the study
// allows.
func (m *moves) number(name string, want int, why string) {
	e, err := engine.ByName(m.p.cmd.Engine)
	if err != nil || !settable(e, name) || want < 1 {
		return
	}
	have, _ := strconv.Atoi(m.p.value(name))
	if values, ok := m.f.narrow(name); ok {
		want = nearest(values, have, want)
	}
	if want == have || want < 1 || name == engine.MaxBatched && (want < leastBatch || want > mostBatch) {
		return
	}
	set := tune.Config{name: strconv.Itoa(want)}
	m.f.keepContext(m.p, set)
	if name == engine.MaxNumSeqs && m.p.cmd.Engine == "vllm" && want > m.p.cfg.Batched {
		set[engine.MaxBatched] = strconv.Itoa(want) // a step has a token of each at least
	}
	m.try(set, why)
}

// nearest is the value beyond have that comes nearest to a wish, 0 where there is none.
func nearest(values []string, have, want int) int {
	best := 0
	for _, text := range values {
		v, err := strconv.Atoi(text)
		if err != nil || (want > have) != (v > have) || v == have {
			continue
		}
		if best == 0 || abs(v-want) < abs(best-want) {
			best = v
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// waiting is how many requests wait, where it is worth a move.
func (m *moves) waiting() (float64, bool) {
	w, ok := m.figure("mean_waiting_requests")
	return w, ok && w >= 1
}

// eager: graphs that are off cost more than anything else that is switched here.
func (m *moves) eager() {
	if m.c[engine.Eager] == "true" {
		m.try(tune.Config{engine.Eager: ""}, "steps run without graphs")
	}
}

// gaps: tokens come too far apart, for steps are too long.
func (m *moves) gaps() {
	m.number(engine.MaxBatched, m.p.cfg.Batched/2, fmt.Sprintf("tokens come too far apart, and a step may hold %d tokens of prompts", m.p.cfg.Batched))
	m.guess("tokens come too far apart")
	m.wider("tokens come too far apart")
	if n, ok := m.running(); ok && n > 1 {
		m.number(engine.MaxNumSeqs, pow2(int(n)/2), fmt.Sprintf("tokens come too far apart while a copy computes %.0f requests at a time", n))
	}
}

// running is the mean number of requests of a copy.
func (m *moves) running() (float64, bool) {
	n, ok := m.figure("mean_running_requests")
	return n / float64(m.copies), ok
}

// memory: requests wait for room in the KV cache, or lose it.
func (m *moves) memory() {
	why := ""
	waits, waiting := m.waiting()
	peak, known := m.figure("max_kv_usage")
	lost, told := m.figure("preemptions")
	switch {
	case told && lost >= 1:
		why = fmt.Sprintf("%.0f requests lost their room in the KV cache", lost)
	case waiting && known && peak >= fullKV:
		why = fmt.Sprintf("%.0f requests wait while the KV cache is %.0f %% full at its peak", waits, 100*peak)
	default:
		return
	}
	e, err := engine.ByName(m.p.cmd.Engine)
	if err != nil {
		return
	}
	if kvFormat(m.p.value(engine.KVDtype)) == "" {
		for _, v := range m.f.formats(e) {
			if kvFormat(v) != "" {
				m.try(tune.Config{engine.KVDtype: v}, why+": a smaller format holds more")
				break
			}
		}
	}
	if more := shares(m.p.value(engine.MemoryShare)); len(more) > 0 && settable(e, engine.MemoryShare) && m.p.deviceShare() {
		m.share(more[0], why)
	}
	m.attention(why)
	m.wider(why)
	if lost >= 1 && told {
		fewer := m.p.cfg.Seqs - 1
		if n, ok := m.running(); ok {
			fewer = min(fewer, int(math.Ceil(n)))
		}
		m.number(engine.MaxNumSeqs, pow2(fewer), why)
	}
	if e.Name != "vllm" { // which admits by what a request has, not by what it may have
		m.trim(why)
	}
}

// share tries a share of memory, or the least that the study allows above what there is.
func (m *moves) share(value, why string) {
	values, ok := m.f.narrow(engine.MemoryShare)
	have, _ := strconv.ParseFloat(m.p.value(engine.MemoryShare), 64)
	if ok {
		value = ""
		least := math.Inf(1)
		for _, text := range values {
			if x, err := strconv.ParseFloat(text, 64); err == nil && x > have && x < least {
				value, least = text, x
			}
		}
	}
	if value != "" {
		m.try(tune.Config{engine.MemoryShare: value}, why)
	}
}

// allowedShare is a share of memory as the study allows it: where it lists some the greatest
// that is no more, or else the least.
func (f *rules) allowedShare(want string) string {
	values, ok := f.narrow(engine.MemoryShare)
	most, err := strconv.ParseFloat(want, 64)
	if !ok || err != nil || slices.Contains(values, want) {
		return want
	}
	below, least := math.Inf(-1), math.Inf(1)
	for _, text := range values {
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case x <= most && x > below:
			want, below = text, x
		case math.IsInf(below, -1) && x < least:
			want, least = text, x
		}
	}
	return want
}

// attention: latent attention keeps the same cache on every rank, so that ranks with
// requests of their own hold so many times more.
func (m *moves) attention(why string) {
	e, err := engine.ByName(m.p.cmd.Engine)
	cfg := m.p.cfg
	if err != nil || cfg.Model.MLA == nil || cfg.TP < 2 || cfg.AttentionDP > 1 || !settable(e, engine.AttentionDP) {
		return
	}
	set := tune.Config{engine.AttentionDP: "true"}
	if settable(e, engine.DP) {
		set[engine.DP] = strconv.Itoa(cfg.TP)
	}
	m.try(set, why+", which every rank keeps whole")
}

// wider: a copy over twice the devices, where there are others to take them from.
func (m *moves) wider(why string) {
	e, err := engine.ByName(m.p.cmd.Engine)
	cfg := m.p.cfg
	if err != nil || !settable(e, engine.TP) || cfg.GPUs < 1 || 2*cfg.GPUs > m.f.o.GPUs {
		return
	}
	set := tune.Config{engine.TP: strconv.Itoa(2 * cfg.TP)}
	if m.c[engine.DP] != "" && m.c[engine.AttentionDP] == "true" {
		set[engine.DP] = strconv.Itoa(2 * cfg.DP)
	}
	if m.f.Refuse(with(m.c, set)) != "" && m.c[engine.ExpertParallel] == "" {
		set[engine.ExpertParallel] = "true"
	}
	if set[engine.ExpertParallel] == "true" && cfg.Model.MoE == nil {
		return
	}
	m.try(set, why)
}

// trim: a length that no request has makes an engine keep room, or admit fewer.
func (m *moves) trim(why string) {
	if m.f.longest > 0 && m.p.cfg.MaxLen > 2*m.f.longest {
		m.try(tune.Config{engine.MaxModelLen: m.f.enough()}, fmt.Sprintf("%s, and no request is longer than %d tokens", why, m.f.longest))
	}
}

// limit: requests wait though there is room for them in the KV cache.
func (m *moves) limit() {
	waits, waiting := m.waiting()
	use, known := m.figure("mean_kv_usage")
	lost := m.figures["preemptions"] // 0 too where none is told of
	if gpu, ok := m.figure("mean_gpu_utilization"); !waiting || lost >= 1 || ok && gpu < busyGPU {
		return
	}
	if !known && !m.p.measuredOnly() || known && use >= roomKV {
		return
	}
	why := fmt.Sprintf("%.0f requests wait while %.0f %% of the KV cache is in use", waits, 100*use)
	grow := 4.0
	if known && use > 0 {
		grow = min(grow, fullKV/use)
	} else if !known { // its slots divide the cache beforehand
		why = fmt.Sprintf("%.0f requests wait for one of %d places", waits, m.p.cfg.Seqs)
	}
	if peak, ok := m.figure("max_running_requests"); ok && peak >= atLimit*float64(m.p.cfg.Seqs*m.copies) {
		need := (peak + max(waits, m.figures["max_waiting_requests"])) / float64(m.copies)
		if want := min(ceil2(int(math.Ceil(need))), m.room(grow)); want > m.p.cfg.Seqs {
			m.number(engine.MaxNumSeqs, want, why)
		}
	} else if n, told := m.figure("mean_running_requests"); ok && told && n >= plateau*peak {
		m.hidden(peak, waits, why)
	}
	m.number(engine.MaxBatched, 2*m.p.cfg.Batched, why)
}

// hidden: requests wait while as many run all the time as ever do, fewer than the limit
// allows as it is known: there is another, lower one, and to set it explicitly moves it.
func (m *moves) hidden(peak, waits float64, why string) {
	need := (peak + max(waits, m.figures["max_waiting_requests"])) / float64(m.copies)
	why += fmt.Sprintf(", and %.0f run at most where %d should", peak, m.p.cfg.Seqs*m.copies)
	before := len(m.out)
	for _, want := range []int{ceil2(int(math.Ceil(need))), 2 * m.p.cfg.Seqs, m.p.cfg.Seqs / 2} {
		if len(m.out) == before && float64(want*m.copies) > peak {
			m.number(engine.MaxNumSeqs, want, why)
		}
	}
}

// plateau is the mean number of running requests, as a share of the most that ever ran,
// from which something holds them at that number: a load that its prompts hold back runs
// at its most for a moment only. It does not depend on how many requests a load has.
const plateau = 0.75

// room is a limit of requests by how much it may grow: a power of two, or what is left
// under the next one.
func (m *moves) room(grow float64) int {
	n := int(grow * float64(m.p.cfg.Seqs))
	if p := pow2(n); p > m.p.cfg.Seqs {
		return p
	}
	return n / 16 * 16
}

// prompts: first tokens come late though nothing waits for room, for a step takes few
// tokens of prompts.
func (m *moves) prompts(late, gaps bool) {
	waits, known := m.figure("mean_waiting_requests")
	if !late || !known || waits >= 1 {
		return
	}
	if !gaps {
		m.number(engine.MaxBatched, 2*m.p.cfg.Batched, fmt.Sprintf("first tokens are late while %.1f requests wait, and a step holds %d tokens", waits, m.p.cfg.Batched))
	}
	e, err := engine.ByName(m.p.cmd.Engine)
	if err == nil && !m.p.cfg.Chunked && settable(e, engine.ChunkedPrefill) && m.f.allowed(engine.ChunkedPrefill, "true") {
		m.try(tune.Config{engine.ChunkedPrefill: "true"}, "first tokens are late, and a prompt waits for a step that holds all of it")
	}
	m.wider(fmt.Sprintf("first tokens are late while %.1f requests wait", waits))
}

// graphs: batches are larger than any captured one.
func (m *moves) graphs() {
	n, ok := m.running()
	if !ok || m.p.cfg.GraphMax < 1 {
		return
	}
	batch := n
	if m.p.cmd.Engine == "vllm" { // which counts tokens
		batch *= float64(1 + m.p.cfg.SpecTokens)
	}
	if batch <= float64(m.p.cfg.GraphMax) {
		return
	}
	if peak, ok := m.figure("max_running_requests"); ok {
		batch = max(batch, batch/n*min(peak/float64(m.copies), float64(m.p.cfg.Seqs)))
	}
	m.number(engine.GraphMax, ceil2(int(math.Ceil(batch))), fmt.Sprintf("%.0f requests of a copy run at a time, and graphs end at %d", n, m.p.cfg.GraphMax))
}

// acceptance: guesses that are not accepted cost their computation, and with many
// requests any guess does.
func (m *moves) acceptance() {
	length, ok := m.figure("acceptance_length")
	if !ok { // no counters were read, and the answers may tell
		length, ok = m.figure("request_acceptance_length")
	}
	have, on := parseSpec(m.p.cmd.Params[engine.Speculative])
	if !ok || !on {
		return
	}
	k := max(have.k, m.p.cfg.SpecTokens)
	if k < 1 {
		return
	}
	share := (length - 1) / float64(k)
	why := fmt.Sprintf("%.2f tokens of %d come out of a step that guesses", length, k+1)
	n, _ := m.running()
	i := slices.IndexFunc(guessLadder, func(v int) bool { return v >= k })
	switch {
	case share < badGuess && k > 1 && i > 0:
		m.guesses(have.tokens(guessLadder[i-1]), why)
	case share > sureHit && i >= 0 && i+1 < len(guessLadder) && n < crowd:
		m.guesses(have.tokens(guessLadder[i+1]), why)
	}
	if share < badGuess || n >= crowd {
		if n >= crowd {
			why += fmt.Sprintf(", with %.0f requests of a copy at a time", n)
		}
		m.try(tune.Config{engine.Speculative: ""}, why)
	}
}

func (m *moves) guesses(value, why string) {
	if value != "" {
		m.try(tune.Config{engine.Speculative: value}, why)
	}
}

// guess turns the model's own speculation on.
func (m *moves) guess(why string) {
	e, err := engine.ByName(m.p.cmd.Engine)
	if err != nil || m.p.cmd.Params[engine.Speculative] != "" {
		return
	}
	for _, v := range m.f.guesses(e, shape{model: m.p.cfg.Model}) {
		if v != "" {
			m.guesses(v, why)
			return
		}
	}
}

// host: devices wait for processors.
func (m *moves) host() {
	gpu, ok := m.figure("mean_gpu_utilization")
	cpu, known := m.figure("mean_host_cpu")
	e, err := engine.ByName(m.p.cmd.Engine)
	if !ok || !known || gpu >= busyGPU || cpu < hotHost || err != nil || !settable(e, engine.Overlap) {
		return
	}
	m.try(tune.Config{engine.Overlap: "true"}, fmt.Sprintf("GPUs work %.0f %% of the time while the host's processors are %.0f %% in use", 100*gpu, 100*cpu))
}

// pow2 is the largest power of two up to n, 0 for none; ceil2 the least from n on.
func pow2(n int) int {
	out := 0
	for p := 1; p <= n; p *= 2 {
		out = p
	}
	return out
}

func ceil2(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// Repairs are what a refusal asks for, best first: the change that its line names, then
// what else its class is cured by. Cmd is the command that failed.
func (f *Field) Repairs(c tune.Config, failure logs.Failure, cmd engine.Command) []tune.Change {
	c = clean(c)
	p := f.resolve(c)
	m := &moves{f: f.rules, c: c, p: p, copies: 1, seen: map[string]bool{p.identity(c): true}}
	why := "the engine refused: " + strings.TrimRight(cmp.Or(failure.Line, failure.Advice, failure.Class), ".")
	if failure.Infra {
		return nil
	}
	if set := tune.Config(failure.RepairFor(cmd)); len(set) > 0 {
		if v := set[engine.MemoryShare]; v != "" && failure.Class != "kv-memory" { // which asks for more
			set[engine.MemoryShare] = m.f.allowedShare(v)
		}
		m.try(set, why)
	}
	if p.err != nil {
		return m.out
	}
	switch failure.Class {
	case "oom-start", "oom-graph":
		if failure.Class == "oom-graph" {
			m.number(engine.GraphMax, p.cfg.GraphMax/2, why)
		}
		m.number(engine.MaxBatched, p.cfg.Batched/2, why)
		m.trim(why)
		m.wider(why)
	case "oom-load":
		m.number(engine.MaxBatched, p.cfg.Batched/2, why)
		m.wider(why)
	case "kv-memory":
		m.trim(why)
		m.wider(why)
	case "divide", "fp8-block", "heads":
		if p.cfg.Model.MoE != nil && failure.Class != "heads" {
			m.try(tune.Config{engine.ExpertParallel: "true"}, why)
		}
		if p.cfg.TP > 1 {
			m.try(tune.Config{engine.TP: strconv.Itoa(p.cfg.TP / 2)}, why)
		}
	}
	return m.out[:min(len(m.out), mostMoves)]
}
