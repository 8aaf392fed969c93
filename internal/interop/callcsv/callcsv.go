// Package callcsv writes the calls of a run as a table of comma-separated
// values, and reads them again with the same figures.
//
//	err := callcsv.Write(w, header, calls)
//	table := callcsv.Read(data) // table.Calls, and table.Faults with their lines
//
// Invariants: a column has the name that the Parquet file has; the reader and
// the writer of a column are one row of a table, so that none is forgotten. A
// row that cannot be read is a fault and left out, never guessed.
//
// Deliberately absent: tables of other tools.
package callcsv

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/result"
)

// callColumn is one fact of a call as text; empty where it is missing.
type callColumn struct {
	name   string
	needed bool // a row says nothing without it
	get    func(h *result.Header, c *result.Call) string
	set    func(c *rowCall, text string) error
}

// rowCall is a call while its row is read: what its columns say together.
type rowCall struct {
	result.Call
	model                        string
	answered                     bool
	usage                        result.Usage
	said                         bool // the server sent a usage
	guesses                      result.Speculation
	guessed                      bool // the server tells of them
	byStep                       []int64
	chunkNS, chunkTokens, chunkN []int64
	emptyNS, emptyN              []int64
	lateN, lateNS                []int64
}

// whole returns a column of an integer that is missing where it is zero.
func whole(name string, get func(*result.Call) int64, set func(*rowCall, int64)) callColumn {
	return callColumn{name: name, get: func(_ *result.Header, c *result.Call) string {
		if v := get(c); v != 0 {
			return strconv.FormatInt(v, 10)
		}
		return ""
	}, set: integer(set)}
}

// stamp returns a column of a time that is always there.
func stamp(name string, at func(*result.Call) *time.Duration) callColumn {
	return callColumn{name: name, needed: true,
		get: func(_ *result.Header, c *result.Call) string { return strconv.FormatInt(int64(*at(c)), 10) },
		set: integer(func(c *rowCall, v int64) { *at(&c.Call) = time.Duration(v) })}
}

// maybeStamp returns a column of a time that may be missing.
func maybeStamp(name string, at func(*result.Call) *time.Duration) callColumn {
	return whole(name, func(c *result.Call) int64 { return int64(*at(c)) }, func(c *rowCall, v int64) { *at(&c.Call) = time.Duration(v) })
}

// count returns a column of a number that may be missing.
func count(name string, at func(*result.Call) *int) callColumn {
	return whole(name, func(c *result.Call) int64 { return int64(*at(c)) }, func(c *rowCall, v int64) { *at(&c.Call) = int(v) })
}

// word returns a column of text.
func word(name string, at func(*result.Call) *string) callColumn {
	return callColumn{name: name,
		get: func(_ *result.Header, c *result.Call) string { return *at(c) },
		set: func(c *rowCall, text string) error { *at(&c.Call) = text; return nil }}
}

// derived returns a column that follows from others and is for readers of the
// file: it is not read back.
func derived(name string, get func(*result.Header, *result.Call) string) callColumn {
	return callColumn{name: name, get: get, set: func(*rowCall, string) error { return nil }}
}

// usageCount returns a column of the server's usage, which may say zero.
func usageCount(name string, always bool, at func(*result.Usage) *int) callColumn {
	return toldCount(name, always, func(c *result.Call) *result.Usage { return c.Usage },
		func(c *rowCall) *result.Usage { c.said = true; return &c.usage }, at)
}

// guessCount returns a column of what the server says of its guesses.
func guessCount(name string, always bool, at func(*result.Speculation) *int) callColumn {
	return toldCount(name, always, func(c *result.Call) *result.Speculation { return c.Speculation },
		func(c *rowCall) *result.Speculation { c.guessed = true; return &c.guesses }, at)
}

// toldCount returns a column of a count among what a server may tell: in of a call, nil
// where it does not, and in to of a row that has it. Unless always, zero is missing.
func toldCount[T any](name string, always bool, in func(*result.Call) *T, to func(*rowCall) *T, at func(*T) *int) callColumn {
	return callColumn{name: name,
		get: func(_ *result.Header, c *result.Call) string {
			told := in(c)
			if told == nil || !always && *at(told) == 0 {
				return ""
			}
			return strconv.Itoa(*at(told))
		},
		set: integer(func(c *rowCall, v int64) { *at(to(c)) = int(v) })}
}

// numbers returns a column of integers with spaces between.
func numbers(name string, get func(*result.Call) []int64, at func(*rowCall) *[]int64) callColumn {
	return callColumn{name: name,
		get: func(_ *result.Header, c *result.Call) string {
			var b []byte
			for i, v := range get(c) {
				if i > 0 {
					b = append(b, ' ')
				}
				b = strconv.AppendInt(b, v, 10)
			}
			return string(b)
		},
		set: func(c *rowCall, text string) error {
			list := at(c)
			for part := range strings.FieldsSeq(text) {
				v, err := strconv.ParseInt(part, 10, 64)
				if err != nil {
					return fmt.Errorf("has %.30q, which is no whole number", part)
				}
				*list = append(*list, v)
			}
			return nil
		}}
}

func integer(set func(*rowCall, int64)) func(*rowCall, string) error {
	return func(c *rowCall, text string) error {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("is %.30q, which is no whole number", text)
		}
		set(c, v)
		return nil
	}
}

// truth returns a column of true and false.
func truth(name string, get func(*result.Header, *result.Call) bool, set func(*rowCall, bool)) callColumn {
	return callColumn{name: name,
		get: func(h *result.Header, c *result.Call) string { return strconv.FormatBool(get(h, c)) },
		set: func(c *rowCall, text string) error {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("is %.30q, which is neither true nor false", text)
			}
			set(c, v)
			return nil
		}}
}

// callColumns are the columns of a call, with the names that the Parquet file
// has.
func callColumns() []callColumn {
	return append(whichColumns(), []callColumn{
		stamp("due_ns", func(c *result.Call) *time.Duration { return &c.Due }),
		stamp("ready_ns", func(c *result.Call) *time.Duration { return &c.Ready }),
		stamp("sent_ns", func(c *result.Call) *time.Duration { return &c.Sent }),
		maybeStamp("wrote_ns", func(c *result.Call) *time.Duration { return &c.Wrote }),
		maybeStamp("first_ns", func(c *result.Call) *time.Duration { return &c.First }),
		maybeStamp("headers_ns", func(c *result.Call) *time.Duration { return &c.Headers }),
		derived("first_token_ns", func(_ *result.Header, c *result.Call) string { return known(c.FirstToken()) }),
		maybeStamp("answer_ns", func(c *result.Call) *time.Duration { return &c.Answer }),
		derived("last_token_ns", func(_ *result.Header, c *result.Call) string { return known(c.LastToken()) }),
		maybeStamp("usage_ns", func(c *result.Call) *time.Duration { return &c.UsageAt }),
		maybeStamp("done_ns", func(c *result.Call) *time.Duration { return &c.Done }),
		stamp("end_ns", func(c *result.Call) *time.Duration { return &c.End }),
		{name: "conn_new", get: connText, set: truth("", nil, func(c *rowCall, v bool) { c.New = v }).set},
		maybeStamp("dns_ns", func(c *result.Call) *time.Duration { return &c.DNS }),
		maybeStamp("dial_ns", func(c *result.Call) *time.Duration { return &c.Dial }),
		maybeStamp("tls_ns", func(c *result.Call) *time.Duration { return &c.TLS }),
		count("conn_replaced", func(c *result.Call) *int { return &c.Replaced }),
		derived("prompt_tokens", func(_ *result.Header, c *result.Call) string { n, _ := c.Input(); return positive(n) }),
		derived("prompt_tokens_from", func(_ *result.Header, c *result.Call) string { return source(c.Input()) }),
		derived("output_tokens", func(_ *result.Header, c *result.Call) string { n, _ := c.Output(); return positive(n) }),
		derived("output_tokens_from", func(_ *result.Header, c *result.Call) string { return source(c.Output()) }),
		usageCount("usage_prompt_tokens", true, func(u *result.Usage) *int { return &u.Prompt }),
		usageCount("usage_completion_tokens", true, func(u *result.Usage) *int { return &u.Completion }),
		usageCount("cached_tokens", false, func(u *result.Usage) *int { return &u.Cached }),
		usageCount("reasoning_tokens", false, func(u *result.Usage) *int { return &u.Reasoning }),
		count("want_input", func(c *result.Call) *int { return &c.WantIn }),
		count("want_output", func(c *result.Call) *int { return &c.Want }),
		count("text_tokens", func(c *result.Call) *int { return &c.Recount }),
		count("first_text_bytes", func(c *result.Call) *int { return &c.FirstText }),
		count("text_bytes", func(c *result.Call) *int { return &c.StreamText }),
		guessCount("spec_steps", false, func(g *result.Speculation) *int { return &g.Steps }),
		guessCount("spec_drafted", false, func(g *result.Speculation) *int { return &g.Drafted }),
		guessCount("spec_accepted", true, func(g *result.Speculation) *int { return &g.Accepted }),
		numbers("spec_by_step", ofSteps, func(c *rowCall) *[]int64 { return &c.byStep }),
		word("finish", func(c *result.Call) *string { return &c.Finish }),
		count("status", func(c *result.Call) *int { return &c.Status }),
		truth("simulated", func(h *result.Header, c *result.Call) bool { return c.Sim || h.Simulated || h.Predicted }, func(c *rowCall, v bool) { c.Sim = c.Sim || v && !c.answered }),
		truth("answer_simulated", func(_ *result.Header, c *result.Call) bool { return c.Sim }, func(c *rowCall, v bool) { c.Sim, c.answered = v, true }),
		word("new_field", func(c *result.Call) *string { return &c.Field }),
		word("class", func(c *result.Call) *string { return (*string)(&c.Class) }),
		word("error", func(c *result.Call) *string { return &c.Error }),
		word("text", func(c *result.Call) *string { return &c.Text }),
		word("trace_id", func(c *result.Call) *string { return &c.TraceID }),
		word("span_id", func(c *result.Call) *string { return &c.SpanID }),
		count("reads", func(c *result.Call) *int { return &c.Reads }),
		count("coarse", func(c *result.Call) *int { return &c.Coarse }),
		numbers("chunk_ns", ofChunks(func(k result.Chunk) int64 { return int64(k.At) }, false), func(c *rowCall) *[]int64 { return &c.chunkNS }),
		numbers("chunk_tokens", ofChunks(func(k result.Chunk) int64 { return int64(k.Tokens) }, false), func(c *rowCall) *[]int64 { return &c.chunkTokens }),
		numbers("chunk_read", ofChunks(func(k result.Chunk) int64 { return int64(k.Read) }, true), func(c *rowCall) *[]int64 { return &c.chunkN }),
		numbers("empty_ns", ofEmpties(func(s result.Stamp) int64 { return int64(s.At) }, false), func(c *rowCall) *[]int64 { return &c.emptyNS }),
		numbers("empty_read", ofEmpties(func(s result.Stamp) int64 { return int64(s.Read) }, true), func(c *rowCall) *[]int64 { return &c.emptyN }),
		numbers("late_read", ofLate(func(l result.LateRead) int64 { return int64(l.Read) }), func(c *rowCall) *[]int64 { return &c.lateN }),
		numbers("late_ns", ofLate(func(l result.LateRead) int64 { return int64(l.By) }), func(c *rowCall) *[]int64 { return &c.lateNS }),
	}...)
}

// whichColumns are those that say which call it is.
func whichColumns() []callColumn {
	return []callColumn{
		{name: "index", needed: true, get: func(_ *result.Header, c *result.Call) string { return strconv.Itoa(c.Index) }, set: integer(func(c *rowCall, v int64) { c.Index = int(v) })},
		{name: "target", get: func(_ *result.Header, c *result.Call) string { return strconv.Itoa(c.Target) }, set: integer(func(c *rowCall, v int64) { c.Target = int(v) })},
		count("agent", func(c *result.Call) *int { return &c.Agent }),
		count("session", func(c *result.Call) *int { return &c.Session }),
		{name: "turn", get: turnText, set: integer(func(c *rowCall, v int64) { c.Turn = int(v) })},
		count("turns", func(c *result.Call) *int { return &c.Turns }),
		{name: "model", get: func(h *result.Header, c *result.Call) string { return cmp.Or(c.Model, h.Model) }, set: func(c *rowCall, text string) error { c.model = text; return nil }},
	}
}

// turnText is the turn of a conversation, of which the first is 0.
func turnText(_ *result.Header, c *result.Call) string {
	if c.Session == 0 {
		return ""
	}
	return strconv.Itoa(c.Turn)
}

// connText is whether the connection was new, where the call tells.
func connText(_ *result.Header, c *result.Call) string {
	if !c.New && c.Wrote == 0 {
		return ""
	}
	return strconv.FormatBool(c.New)
}

func known(d time.Duration, ok bool) string {
	if !ok {
		return ""
	}
	return strconv.FormatInt(int64(d), 10)
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func source(n int, s result.Source) string {
	if n <= 0 {
		return ""
	}
	return string(s)
}

// ofChunks returns one number of each chunk; that of the read only where reads
// were counted.
func ofChunks(of func(result.Chunk) int64, read bool) func(*result.Call) []int64 {
	return func(c *result.Call) (list []int64) {
		for _, k := range c.Chunks {
			if !read || c.Reads > 0 {
				list = append(list, of(k))
			}
		}
		return list
	}
}

func ofEmpties(of func(result.Stamp) int64, read bool) func(*result.Call) []int64 {
	return func(c *result.Call) (list []int64) {
		for _, s := range c.Empty {
			if !read || c.Reads > 0 {
				list = append(list, of(s))
			}
		}
		return list
	}
}

// ofSteps returns how many steps accepted none of their guesses, one, and so on.
func ofSteps(c *result.Call) (list []int64) {
	if c.Speculation != nil {
		for _, n := range c.Speculation.ByStep {
			list = append(list, int64(n))
		}
	}
	return list
}

// ofLate returns one number of each read that was late.
func ofLate(of func(result.LateRead) int64) func(*result.Call) []int64 {
	return func(c *result.Call) (list []int64) {
		for _, l := range c.Late {
			list = append(list, of(l))
		}
		return list
	}
}

// runColumn is one fact of the run, the same in every row.
type runColumn struct {
	name string
	get  func(*result.Header) string
	set  func(*result.Header, string) error
}

func runWord(name string, at func(*result.Header) *string) runColumn {
	return runColumn{name, func(h *result.Header) string { return *at(h) }, func(h *result.Header, text string) error { *at(h) = text; return nil }}
}

func runCount(name string, at func(*result.Header) *int) runColumn {
	return runColumn{name, func(h *result.Header) string { return positive(*at(h)) }, func(h *result.Header, text string) (err error) {
		if *at(h), err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("is %.30q, which is no whole number", text)
		}
		return nil
	}}
}

func runTruth(name string, at func(*result.Header) *bool) runColumn {
	return runColumn{name, func(h *result.Header) string { return strconv.FormatBool(*at(h)) }, func(h *result.Header, text string) (err error) {
		if *at(h), err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("is %.30q, which is neither true nor false", text)
		}
		return nil
	}}
}

// runColumns are what figures and verdicts need of the header.
func runColumns() []runColumn {
	return []runColumn{
		runWord("run_version", func(h *result.Header) *string { return &h.Version }),
		{"run_started", func(h *result.Header) string { return h.Started.Format(time.RFC3339Nano) }, func(h *result.Header, text string) (err error) {
			if h.Started, err = time.Parse(time.RFC3339Nano, text); err != nil {
				return fmt.Errorf("is %.40q, which is no time", text)
			}
			return nil
		}},
		runTruth("run_simulated", func(h *result.Header) *bool { return &h.Simulated }),
		runTruth("run_predicted", func(h *result.Header) *bool { return &h.Predicted }),
		runWord("run_model", func(h *result.Header) *string { return &h.Model }),
		runWord("run_backend", func(h *result.Header) *string { return &h.Backend }),
		runWord("run_workload", func(h *result.Header) *string { return &h.Workload }),
		runCount("run_requests", func(h *result.Header) *int { return &h.Requests }),
		{"request_rate", func(h *result.Header) string {
			if h.Rate == 0 {
				return ""
			}
			return strconv.FormatFloat(h.Rate, 'g', -1, 64)
		}, func(h *result.Header, text string) (err error) {
			if h.Rate, err = strconv.ParseFloat(text, 64); err != nil {
				return fmt.Errorf("is %.30q, which is no number", text)
			}
			return nil
		}},
		runCount("max_concurrency", func(h *result.Header) *int { return &h.Limit }),
		runWord("run_clock", func(h *result.Header) *string { return &h.Clock }),
		runTruth("run_late_reads", func(h *result.Header) *bool { return &h.LateReads }),
		runWord("run_cache", func(h *result.Header) *string { return &h.Cache }),
		runTruth("run_shares_prefixes", func(h *result.Header) *bool { return &h.Sharing }),
		runWord("run_fingerprint", func(h *result.Header) *string { return &h.Fingerprint }),
		runWord("run_tokenizer", func(h *result.Header) *string { return &h.Tokenizer }),
		runOrigin("run_client", func(i *result.Imported) string { return i.Client }, func(i *result.Imported, text string) { i.Client = text }),
		runOrigin("run_client_version", func(i *result.Imported) string { return i.Version }, func(i *result.Imported, text string) { i.Version = text }),
		runOrigin("run_definitions", func(i *result.Imported) string {
			var all []string
			for _, of := range slices.Sorted(maps.Keys(i.Definitions)) {
				all = append(all, of+"="+string(i.Definitions[of]))
			}
			return strings.Join(all, " ")
		}, func(i *result.Imported, text string) {
			i.Definitions = map[string]result.Definition{}
			for pair := range strings.FieldsSeq(text) {
				of, d, _ := strings.Cut(pair, "=")
				i.Definitions[of] = result.Definition(d)
			}
		}),
		runOrigin("run_lacks", func(i *result.Imported) string { return strings.Join(i.Lacks, " ") },
			func(i *result.Imported, text string) { i.Lacks = strings.Fields(text) }),
	}
}

// runOrigin is a fact of an imported run, empty of one that perflab measured.
func runOrigin(name string, get func(*result.Imported) string, set func(*result.Imported, string)) runColumn {
	return runColumn{name, func(h *result.Header) string {
		if h.Imported == nil {
			return ""
		}
		return get(h.Imported)
	}, func(h *result.Header, text string) error { set(h.Imported, text); return nil }}
}

// Write writes the calls of a run as a table, one row a call in the order they
// come: the facts of the call in base units under the names that the Parquet
// file has, lists with spaces between their numbers, then what is the same for
// the whole run. What is missing is empty. Read reads it back with the same
// figures.
func Write(w io.Writer, h result.Header, calls iter.Seq[result.Call]) error {
	out := csv.NewWriter(w)
	columns, constant := callColumns(), runColumns()
	row := make([]string, 0, len(columns)+len(constant))
	for _, c := range columns {
		row = append(row, c.name)
	}
	for _, c := range constant {
		row = append(row, c.name)
	}
	if err := out.Write(row); err != nil {
		return fmt.Errorf("write the calls as CSV: %w", err)
	}
	for c := range calls {
		row = row[:0]
		for _, col := range columns {
			row = append(row, col.get(&h, &c))
		}
		for _, col := range constant {
			row = append(row, col.get(&h))
		}
		if err := out.Write(row); err != nil {
			return fmt.Errorf("write the calls as CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the calls as CSV: %w", err)
	}
	return nil
}
