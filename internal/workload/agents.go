package workload

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/stat"
	"perflab/internal/workload/agents"
)

// agentSessions are recorded sessions of agents.
func agentSessions() dataset {
	return dataset{
		name: "agents", group: groupAgents, sessions: true, whole: true, unit: "session",
		params: []param{
			{key: "start_ratio", help: "begin the first [max_concurrency] sessions after this share of their requests, drawn for each from 0.25..0.75, with the server's prefix cache filled as if the requests before had run (default 0)"},
			{key: "max_idle", help: "no longer than this between a request and the one that waited for it, such as 60s (default: as recorded)"},
			{key: "max_context", help: "tokens of prompt and answer that the model has room for (default: any number)", limit: agents.MaxTokens},
			{key: "over_context", help: "what becomes of a request that [max_context] has no room for: drop it and all that waits for it, or truncate its prompt (default drop)"},
			{key: "no_session_affinity", help: affinityHelp},
			{key: "session_header", help: sessionHeaderHelp},
			{key: "disable_shuffle", help: "keep the file's order"}, noRepeats,
		},
		fill:  fillAgents,
		check: checkAgents, find: readAgents,
		hint:     ": a file with a JSON object for each session (or, by TraceLab, for each request), or a directory of such files: in the form of WEKA's traces, of TraceLab's, or in perflab's own (docs/agents.md)",
		isMadeUp: always, ofWords: always, shares: always,
		title: func(s Spec) string { return ofFile("Agent sessions", s) },
	}
}

// What becomes of a request that the model has no room for.
const (
	overDrop     = "drop"
	overTruncate = "truncate"
)

func fillAgents(s *Spec) {
	s.IgnoreEOS = true
	if s.MaxContext > 0 {
		s.OverContext = cmp.Or(s.OverContext, overDrop)
	}
}

func checkAgents(s, d Spec, f *faults) {
	if _, err := s.MaxIdle.Duration(); err != nil {
		f.add("max_idle", "%v", err)
	}
	if _, _, err := parseRatio(s.StartRatio); err != nil {
		f.add("start_ratio", "%v", err)
	} else if s.StartRatio != "" && !d.closed() {
		f.add("start_ratio", "needs a closed loop: give [max_concurrency], and no rate")
	}
	switch {
	case s.OverContext == "":
	case s.MaxContext == 0:
		f.add("over_context", "applies with [max_context] only")
	default:
		f.oneOf("over_context", s.OverContext, overDrop, overTruncate)
	}
	if s.MaxContext == 1 {
		f.add("max_context", "is 1, which has no room for a prompt and an answer")
	}
}

// tree is a session of agents, of which each turn's prompt is made by itself.
type tree struct {
	agents.Session
	number int // of the session in the files
	round  int // how often the files were gone through before
	from   int // turn with which it begins
}

// Cuts are requests of recorded sessions that are not sent as they were recorded.
type Cuts struct {
	Empty    int // left out: no prompt, or no answer
	Undated  int // left out: no time
	Repeated int // left out: the recording has them twice
	Dropped  int // left out: no room in the context, or they wait for one that has none
	Cut      int // truncated to the context
	Joined   int // sessions that were taken for agents of others
}

func (c *Cuts) add(r agents.Read) {
	c.Empty, c.Undated, c.Repeated, c.Joined = c.Empty+r.Empty, c.Undated+r.Undated, c.Repeated+r.Repeated, c.Joined+r.Joined
}

// Cuts returns how many requests of the sessions that were read are not sent as recorded.
func (w *Workload) Cuts() Cuts { return w.src.cuts }

// Agents reports whether the requests are of recorded sessions of agents.
func (s Spec) Agents() bool { return s.row().name == agentSessions().name }

// Trees reports whether a request may be followed by several, or wait for several.
func (w *Workload) Trees() bool { return w.spec.Agents() }

// readAgents reads sessions and lays them out as often as the spec asks for.
func readAgents(s Spec, p promptBuilder) (source, error) {
	src := source{drops: dropCounts{}}
	files, err := agentFiles(s)
	if err != nil {
		return source{}, err
	}
	var all []agents.Session
	keep := func(r agents.Read) {
		src.read++
		src.cuts.add(r)
		fitting := src.fit(r.Session, s)
		switch {
		case len(r.Turns) == 0:
			src.drops["without a request that can be sent"]++
		case len(fitting.Turns) == 0:
			src.drops["of which the context has no room for any request"]++
		default:
			all = append(all, fitting)
		}
	}
	var reader agents.Reader
	for _, path := range files {
		if err := readSessions(&reader, path, keep); err != nil {
			if len(files) > 1 {
				err = fmt.Errorf("%s: %w", filepath.Base(path), err)
			}
			return source{}, err
		}
	}
	if err := reader.Rest(keep); err != nil {
		return source{}, err
	}
	src.layOut(s, all)
	src.prompt = func(int) string { return "" } // see Workload.turn
	return src, nil
}

// fit is a session as the spec's model can run it.
func (src *source) fit(t agents.Session, s Spec) agents.Session {
	idle, _ := s.MaxIdle.Duration() // Validate has seen the error
	truncate := s.OverContext == overTruncate
	t, n := t.CapIdle(idle).Fit(s.MaxContext, truncate)
	if truncate {
		src.cuts.Cut += n
	} else {
		src.cuts.Dropped += n
	}
	return t
}

// layOut makes rows of sessions: all of them in drawn order, and then again.
func (src *source) layOut(s Spec, all []agents.Session) {
	if len(all) == 0 {
		return
	}
	order := shuffled(s, len(all))
	n := cmp.Or(s.NumPrompts, len(all))
	if s.NoOversample {
		n = min(n, len(all))
	}
	for i := range n {
		k := order[i%len(order)]
		t := conversation{tree: &tree{Session: all[k], number: k, round: i / len(order), from: startTurn(s, i, len(all[k].Turns))}}
		numbered := t.tree.from
		if timeDecides(s) {
			numbered = 0 // when its row comes again, it begins with its first turn
		}
		for _, u := range all[k].Turns[numbered:] {
			t.turns = append(t.turns, turn{question: u.Input, output: u.Output})
		}
		src.conversations = append(src.conversations, t)
		src.rows = append(src.rows, plannedRow(t, s))
	}
	src.rounds = (n + len(all) - 1) / len(all)
}

// startTurn is the turn of so many with which the session of row i begins.
func startTurn(s Spec, i, turns int) int {
	if s.StartRatio == "" || i >= s.MaxConcurrency {
		return 0
	}
	low, high, _ := parseRatio(s.StartRatio) // Validate has seen the error
	ratio := low + (high-low)*stat.Stream(s.Seed, "agents start "+strconv.Itoa(i)).Float64()
	return min(int(ratio*float64(turns)), turns-1)
}

// parseRatio reads a share of a session, or the shares from one to another.
func parseRatio(text string) (low, high float64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	left, right, both := strings.Cut(text, "..")
	low, err = strconv.ParseFloat(left, 64)
	if high = low; both && err == nil {
		high, err = strconv.ParseFloat(right, 64)
	}
	if err != nil || !(0 <= low && low <= high && low < 1 && high <= 1) {
		return 0, 0, fmt.Errorf("%q is no share of a session: write 0.5, or 0.25..0.75, below 1", text)
	}
	return low, high, nil
}

// agentFiles are the files that the path of a spec names.
func agentFiles(s Spec) ([]string, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, field.Errorf("dataset_path", "%s does not exist"+agentSessions().hint, s.Path)
	} else if err != nil {
		return nil, field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	if !info.IsDir() {
		return []string{s.Path}, nil
	}
	entries, err := os.ReadDir(s.Path)
	if err != nil {
		return nil, field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(strings.TrimSuffix(e.Name(), ".gz")); !e.IsDir() && (ext == ".json" || ext == ".jsonl") {
			files = append(files, filepath.Join(s.Path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, field.Errorf("dataset_path", "%s has no file that ends in .json or .jsonl (or that and .gz)"+agentSessions().hint, s.Path)
	}
	return files, nil
}

// readSessions reads a file of them.
func readSessions(r *agents.Reader, path string, keep func(agents.Read)) error {
	f, err := os.Open(path)
	if err != nil {
		return field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	defer f.Close()
	return r.Read(f, keep)
}

// agentPieces are the files of a directory of sessions, or the one.
func agentPieces(s Spec) ([]File, error) {
	files, err := agentFiles(s)
	if err != nil {
		return nil, err
	}
	out := make([]File, len(files))
	for i, path := range files {
		out[i] = File{Key: FileDataset, Path: path}
		if path != s.Path {
			out[i].Name = filepath.Base(path)
		}
	}
	return out, nil
}

// trees is a workload of sessions of agents.
type trees struct{ *Workload }

// session is where session k is among the rows, its tree, and the index of its first turn.
func (w trees) session(k int) (t tree, first int) {
	src, i, before := w.row(k)
	t = *src.conversations[i].tree
	if w.supply != nil && k >= len(src.rows) {
		t.round += k / len(src.rows) * src.rounds
		t.from = 0
	}
	return t, before + src.first[i]
}

// turn is a turn of session k. Each has its whole prompt.
func (w trees) turn(k, turn int) Request {
	t, first := w.session(k)
	u := t.Turns[turn]
	r := Request{
		Index: first + turn - t.from, Session: k + 1, Turn: turn, Turns: len(t.Turns) - t.from,
		Prompt: w.builder.agentPrompt(w.spec.Seed, t, turn), Input: u.Input + w.nonce.tokens, Output: u.Output,
		EOS: !w.spec.IgnoreEOS,
	}
	w.addModelAndImages(&r, k)
	w.nonce.mark(&r)
	return r
}

// agentPrompt joins the blocks of a turn. What stands for an id depends on the
// seed, on the round and, unless ids mean the same everywhere, on the session: so
// prompts share exactly what the recorded ones shared, and no round finds in a cache
// what an earlier one left. What goes on behind the blocks is the turn's own.
func (p promptBuilder) agentPrompt(seed uint64, t tree, turn int) string {
	u := t.Turns[turn]
	space := "agents " + strconv.Itoa(t.round)
	own := space + " session " + strconv.Itoa(t.number)
	if !t.Global {
		space = own
	}
	var b strings.Builder
	b.Grow(bytesFor(u.Input))
	left := u.Input
	for _, id := range u.Blocks {
		n := min(left, t.Block)
		p.writeWords(&b, stat.Stream(seed, space+" block "+strconv.FormatInt(id, 10)), n)
		left -= n
	}
	p.writeWords(&b, stat.Stream(seed, own+" turn "+strconv.Itoa(turn)), left)
	return trimSpace(&b)
}

// nextTurn is the turn behind one in the order of the recording, and its idle time.
func (w trees) nextTurn(r Request) (next Request, idle time.Duration, ok bool) {
	t, _ := w.session(r.Session - 1)
	if r.Turn+1 >= len(t.Turns) {
		return Request{}, 0, false
	}
	return w.turn(r.Session-1, r.Turn+1), t.Turns[r.Turn+1].Idle, true
}

// Recorded is a session of agents of a workload.
type Recorded struct {
	agents.Session
	Number, Round, From int           // which it is of the files, how often these were gone through before, and the turn with which it begins
	First, Head         int           // index of that turn, and tokens of the run alone in front of each prompt
	Due                 time.Duration // of its first request
}

// Recorded is session k, from 0, in the order of All; false behind the last one.
func (w *Workload) Recorded(k int) (r Recorded, ok bool) {
	if !w.Trees() || w.supply == nil && k >= len(w.due) {
		return r, false
	}
	t, first := trees{w}.session(k)
	r = Recorded{t.Session, t.number, t.round, t.from, first, w.nonce.tokens, 0}
	if w.supply == nil {
		r.Due = w.due[k]
	}
	return r, true
}

// Fills are requests that put into a server's prefix cache what it would hold if the sessions
// that begin in the middle had run until there: for each of these the first one, after which NextFill
// has the others. They ask for one token, and their Index counts for nothing.
func (w *Workload) Fills() iter.Seq[Request] {
	return func(yield func(Request) bool) {
		for k := range min(w.spec.MaxConcurrency, len(w.src.rows)) {
			if r, ok := (trees{w}).fill(k, 0); ok && !yield(r) {
				return
			}
		}
	}
}

// NextFill returns the request to fill a cache with after r.
func (w *Workload) NextFill(r Request, _ string) (next Request, wait time.Duration, ok bool) {
	next, ok = trees{w}.fill(r.Session-1, r.Turn+1)
	return next, 0, ok
}

// fill is the first of the requests that session k fills a cache with, from a turn on.
func (w trees) fill(k, turn int) (r Request, ok bool) {
	if !w.Trees() || w.spec.StartRatio == "" {
		return Request{}, false
	}
	t, _ := w.session(k)
	list := t.Filling(t.from)
	i, _ := slices.BinarySearch(list, turn)
	if i == len(list) {
		return Request{}, false
	}
	r = w.turn(k, list[i])
	r.Output = 1
	return r, true
}

// Step is a turn of a session that waits for nothing any more but its time.
type Step = agents.Step

// Way goes through one session of agents as its requests end. Next and Request may be called at any
// time, Ended one at a time.
type Way struct {
	w    trees
	k    int
	walk *agents.Walk
}

// Begin starts the session of a first request at an instant. It returns what besides
// that request waits for no other one.
func (w *Workload) Begin(first Request, at time.Duration) (*Way, []Step) {
	t, _ := trees{w}.session(first.Session - 1)
	y := &Way{trees{w}, first.Session - 1, t.Walk(first.Turn)}
	return y, y.walk.Begin(at)[1:]
}

// Ended takes the end of a turn of the session, and returns what is due after it. One
// that failed takes with it what waits for it: lost is how many turns these are.
func (y *Way) Ended(turn int, at time.Duration, ok bool) (due []Step, lost int) {
	return y.walk.Ended(turn, at, ok)
}

// Next are the turns that wait for a turn: they are known before it has ended.
func (y *Way) Next(turn int) []int { return y.walk.Next(turn) }

// Request makes the request of a turn, but for its due time.
func (y *Way) Request(turn int) Request { return y.w.turn(y.k, turn) }

// hashInput is what a fingerprint takes of session k in place of its prompts, which can
// be a hundred million tokens: all that they are made of, and when they are due.
func (w trees) hashInput(k int) []byte {
	t, _ := w.session(k)
	b := fmt.Appendf(nil, "%d of round %d from %d, seed %d, blocks of %d, global %t, %d words",
		t.number, t.round, t.from, w.spec.Seed, t.Block, t.Global, len(w.builder.words))
	put := func(numbers ...int64) {
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	for _, u := range t.Turns {
		put(int64(u.Input), int64(u.Output), int64(u.Idle), int64(u.At), int64(len(u.After)), int64(len(u.Blocks)))
		for _, k := range u.After {
			put(int64(k))
		}
		put(u.Blocks...)
	}
	return b
}

// asAgents says in a few words how recorded sessions are changed.
func (s Spec) asAgents() (parts []string) {
	if s.StartRatio != "" {
		parts = append(parts, fmt.Sprintf("the first %s from %s of their requests on", plural(s.MaxConcurrency, "session"), s.StartRatio))
	}
	if d, _ := s.MaxIdle.Duration(); d > 0 {
		parts = append(parts, fmt.Sprintf("idle for %v at most", d))
	}
	return parts
}
