package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"perflab/internal/cli/console"
)

// Limits of a command that reads a mutant. A seed needs 0.1 s of processor time and 30 MB, of
// which a second to calibrate by a block that was published; the time is that of the processor, so that a
// busy machine changes nothing, and the wall clock is for what waits. What was repeated in a file may
// take as many times longer.
const (
	mutantCPU    = 5 * time.Second
	mutantTimes  = 20
	mutantWall   = 5 * time.Minute
	mutantMemory = 1 << 30 // of the heap
)

// TestMutants reads files that something has damaged, with each command that reads files of
// others: none panics, hangs or takes the machine's memory, and each ends with a status that it
// promises. PERFLAB_MUTANTS is how many; then the seeds beside the repository are taken too.
// PERFLAB_MUTANTS_OF takes those alone whose file name ends so:
//
//	PERFLAB_MUTANTS=500 go test ./internal/cli -run TestMutants -v
//	PERFLAB_MUTANTS=500 PERFLAB_MUTANTS_OF=.parquet go test ./internal/cli -run TestMutants -v
func TestMutants(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("PERFLAB_MUTANTS"))
	seeds := slices.DeleteFunc(mutantSeeds(t, n > 0), func(s mutantSeed) bool { return !strings.HasSuffix(s.ext, os.Getenv("PERFLAB_MUTANTS_OF")) })
	if n == 0 {
		n = 2 * len(seeds)
	}
	dir := t.TempDir()
	var slowest time.Duration
	var of string
	for i := range n {
		s := seeds[i%len(seeds)]
		random := rand.New(rand.NewPCG(16, uint64(i)))
		name, text := s.mutate(random)
		path := filepath.Join(dir, fmt.Sprintf("%d%s", i, s.ext))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"import", path, "--out", filepath.Join(dir, fmt.Sprint("runs", i))},
			{"audit", path},
			{"calibrate", path, "--gpu", "h100-sxm", "--gpus", "1", "--command", "vllm serve Qwen/Qwen3-8B"},
		} {
			if s.long && args[0] == "calibrate" {
				continue
			}
			what := fmt.Sprintf("mutant %d (%s, %s): %s", i, s.name, name, args[0])
			limit := mutantCPU * time.Duration(min(max(1, len(text)/len(s.text)), mutantTimes))
			took := runMutant(t, what, text, limit, args)
			if took > slowest {
				slowest, of = took, what
			}
		}
		if t.Failed() {
			keepMutant(t, fmt.Sprint(i), s.ext, text)
			return
		}
	}
	t.Logf("%d mutants of %d files; the slowest took %v: %s", n, len(seeds), slowest.Round(time.Millisecond), of)
}

// keepMutant leaves a mutant for whoever looks for its fault.
func keepMutant(t *testing.T, name, ext string, text []byte) {
	t.Helper()
	path := filepath.Join(os.TempDir(), "perflab-mutant-"+name+ext)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Error(err)
	}
	t.Logf("the file is %s", path)
}

// runMutant runs a command within the limits, and says what processor time it took.
func runMutant(t *testing.T, what string, text []byte, limit time.Duration, args []string) time.Duration {
	t.Helper()
	var out bytes.Buffer
	done := make(chan string, 1)
	began, wall := cpuTime(), time.Now()
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		code := Main(console.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }})
		if !slices.Contains([]int{console.ExitDone, console.ExitFailed, console.ExitUsage, console.ExitMissed, console.ExitVoid}, code) {
			done <- fmt.Sprintf("exit status %d\n%s", code, out.String())
			return
		}
		done <- ""
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		took, heap := cpuTime()-began, heapBytes()
		why := ""
		switch {
		case heap > mutantMemory:
			why = fmt.Sprintf("%d MB of heap", heap>>20)
		case took > limit:
			why = fmt.Sprintf("%v of processor time and no end", took)
		case time.Since(wall) > mutantWall:
			why = fmt.Sprintf("no end after %v", mutantWall)
		}
		if why != "" {
			keepMutant(t, "hang", filepath.Ext(args[1]), text)
			debug.SetTraceback("all")
			panic(what + ": " + why) // the command cannot be ended otherwise, and where it is is to be seen
		}
		select {
		case wrong := <-done:
			if wrong != "" {
				t.Errorf("%s: %s", what, wrong)
			}
			return cpuTime() - began
		case <-look.C:
		}
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // does not fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// mutantSeed is a file that is damaged.
type mutantSeed struct {
	name, ext string
	text      []byte
	long      bool // too long for calibrate, which replays each run many times
}

// mutantSeeds are files as clients, documents and perflab itself write them.
func mutantSeeds(t *testing.T, all bool) []mutantSeed {
	t.Helper()
	var out []mutantSeed
	add := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, mutantSeed{name: filepath.Base(path), ext: filepath.Ext(path), text: b})
	}
	const interop = "../interop/testdata/"
	for _, name := range []string{
		"blocks.md", "study.md", "vllm.json", "load/vllm-detailed.json", "load/sglang.jsonl", "load/profile_export.jsonl",
		"load/per_request_lifecycle_metrics.json", "load/profile_export_aiperf.json", "guidellm/v0.8.1-constant.json",
	} {
		add(interop + name)
	}
	script, err := txtar.ParseFile("../../cmd/perflab/testdata/script/calibrate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range script.Files {
		if f.Name == "obs.json" || f.Name == "block.md" {
			out = append(out, mutantSeed{name: f.Name, ext: filepath.Ext(f.Name), text: f.Data})
		}
	}
	for _, path := range exportSeeds(t, interop+"load/vllm-detailed.json") {
		add(path)
	}
	if !all {
		return out
	}
	shared := os.Getenv("PERFLAB_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	real, err := filepath.Glob(filepath.Join(shared, "published", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(real) == 0 {
		t.Log("only the repository's own files are damaged: PERFLAB_SHARED names no directory with published/")
	}
	for _, path := range real {
		add(path)
		whole := &out[len(out)-1]
		whole.ext, whole.long = ".md", true
		out = append(out, whole.piece())
	}
	return out
}

// piece is the part of a document around its first printed block: what calibrate takes a second for, and
// not a minute.
func (s mutantSeed) piece() mutantSeed {
	const around = 1500
	at := max(0, bytes.Index(s.text, []byte("Serving Benchmark Result")))
	return mutantSeed{name: s.name + ", a block", ext: s.ext, text: s.text[max(0, at-around):min(len(s.text), at+around)]}
}

// exportSeeds imports a file with requests, and exports them as each form that can be read again.
func exportSeeds(t *testing.T, path string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		var out bytes.Buffer
		if code := Main(console.Env{Args: args, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}); code != console.ExitDone {
			t.Fatalf("%v: exit %d\n%s", args, code, out.String())
		}
	}
	run("import", path, "--out", filepath.Join(dir, "runs"))
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "0*"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("%v runs, %v", runs, err)
	}
	for _, form := range []string{"csv", "parquet"} {
		to := filepath.Join(dir, "calls."+form)
		run("export", runs[0], "--to", form, "--out", to)
		paths = append(paths, to)
	}
	return paths
}

// mutate damages the file in one to three ways, and names them.
func (s mutantSeed) mutate(r *rand.Rand) (name string, text []byte) {
	ways := slices.Clone(anyWays)
	switch s.ext {
	case ".json", ".jsonl":
		ways = append(append(ways, textWays...), jsonWays...)
	case ".csv":
		ways = append(append(ways, textWays...), csvWays...)
	case ".parquet":
		ways = append(ways, parquetWays...)
	default:
		ways = append(ways, textWays...)
	}
	text = s.text
	var names []string
	for range 1 + r.IntN(3) {
		w := ways[r.IntN(len(ways))]
		text = w.do(r, slices.Clone(text))
		names = append(names, w.name)
		if len(text) == 0 || len(text) > 8<<20 {
			break
		}
	}
	return strings.Join(names, ", "), text
}

// mutation is one way to damage a file that is not empty.
type mutation struct {
	name string
	do   func(*rand.Rand, []byte) []byte
}

// span is a part of a file, mostly a small one.
func span(r *rand.Rand, b []byte) (from, to int) {
	from = r.IntN(len(b))
	most := len(b) - from
	if r.IntN(4) > 0 {
		most = min(most, 200)
	}
	return from, from + 1 + r.IntN(most)
}

var anyWays = []mutation{
	{"bytes changed", func(r *rand.Rand, b []byte) []byte {
		for range 1 + r.IntN(20) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		return b
	}},
	{"cut off", func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }},
	{"part removed", func(r *rand.Rand, b []byte) []byte {
		from, to := span(r, b)
		return slices.Delete(b, from, to)
	}},
	{"part repeated", func(r *rand.Rand, b []byte) []byte {
		from, to := span(r, b)
		return slices.Insert(b, to, bytes.Repeat(slices.Clone(b[from:to]), min(1+r.IntN(1000), (1<<20)/(to-from)+1))...)
	}},
	{"part moved", func(r *rand.Rand, b []byte) []byte {
		from, to := span(r, b)
		part := slices.Clone(b[from:to])
		b = slices.Delete(b, from, to)
		return slices.Insert(b, r.IntN(len(b)+1), part...)
	}},
	{"part zeroed", func(r *rand.Rand, b []byte) []byte {
		from, to := span(r, b)
		clear(b[from:to])
		return b
	}},
	{"noise inserted", func(r *rand.Rand, b []byte) []byte {
		noise := []string{"\x00", "\xff\xfe", "\x1b[2J", "\u202e", "\r", "\n\n\n", "```", "|", "\"", "{", strings.Repeat("9", 400), strings.Repeat("x", 1<<17)}
		return slices.Insert(b, r.IntN(len(b)+1), []byte(noise[r.IntN(len(noise))])...)
	}},
}

var numberPattern = regexp.MustCompile(`-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`)

// oddNumbers are what nobody measures.
var oddNumbers = []string{
	"-1", "0", "-0.0", "1e308", "1e400", "-1e308", "1e-320", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"4294967296", "2147483647", "1e15", "1000000000", "NaN", "Infinity", "-Infinity", "null", "\"12\"", "0x10", "1,234,567.8", strings.Repeat("7", 400),
	"0." + strings.Repeat("0", 400) + "1",
}

// eachNumber replaces numbers of a text, every one with the given chance.
func eachNumber(r *rand.Rand, b []byte, chance float64, with func(string) string) []byte {
	return numberPattern.ReplaceAllFunc(b, func(n []byte) []byte {
		if r.Float64() < chance {
			return []byte(with(string(n)))
		}
		return n
	})
}

var textWays = []mutation{
	{"a number made odd", func(r *rand.Rand, b []byte) []byte {
		at := numberPattern.FindAllIndex(b, -1)
		if len(at) == 0 {
			return b
		}
		n := at[r.IntN(len(at))]
		return slices.Replace(b, n[0], n[1], []byte(oddNumbers[r.IntN(len(oddNumbers))])...)
	}},
	{"numbers made odd", func(r *rand.Rand, b []byte) []byte {
		return eachNumber(r, b, 0.1, func(string) string { return oddNumbers[r.IntN(len(oddNumbers))] })
	}},
	{"numbers made huge", func(r *rand.Rand, b []byte) []byte {
		return eachNumber(r, b, 0.3, func(n string) string { return n + "00000000" })
	}},
	{"numbers negative", func(r *rand.Rand, b []byte) []byte {
		return eachNumber(r, b, 0.3, func(n string) string { return "-" + n })
	}},
	{"all numbers zero", func(r *rand.Rand, b []byte) []byte {
		return eachNumber(r, b, 1, func(string) string { return "0" })
	}},
	{"lines shuffled", func(r *rand.Rand, b []byte) []byte {
		lines := bytes.SplitAfter(b, []byte("\n"))
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return bytes.Join(lines, nil)
	}},
	{"lines dropped", func(r *rand.Rand, b []byte) []byte {
		lines := bytes.SplitAfter(b, []byte("\n"))
		return bytes.Join(slices.DeleteFunc(lines, func([]byte) bool { return r.IntN(10) == 0 }), nil)
	}},
	{"a line repeated", func(r *rand.Rand, b []byte) []byte {
		lines := bytes.SplitAfter(b, []byte("\n"))
		i := r.IntN(len(lines))
		more := slices.Repeat(lines[i:i+1], min(10_000, (1<<20)/(len(lines[i])+1)+1))
		return bytes.Join(slices.Insert(lines, i, more...), nil)
	}},
	{"all repeated", func(r *rand.Rand, b []byte) []byte { return bytes.Repeat(b, min(2+r.IntN(20), (1<<20)/len(b)+2)) }},
	{"words nested", func(r *rand.Rand, b []byte) []byte {
		deep := []string{"> ", "- ", "|", "(", "[", "*", "`", "#", "<div>"}
		return slices.Insert(b, r.IntN(len(b)+1), []byte("\n"+strings.Repeat(deep[r.IntN(len(deep))], 50_000)+"\n")...)
	}},
	{"tokens of other lines", func(r *rand.Rand, b []byte) []byte {
		words := bytes.Fields(slices.Clone(b))
		for range min(len(words), 20) {
			w := words[r.IntN(len(words))]
			b = bytes.Replace(b, w, words[r.IntN(len(words))], 1+r.IntN(3))
		}
		return b
	}},
}

var jsonWays = []mutation{
	{"a value replaced", func(r *rand.Rand, b []byte) []byte {
		odd := []any{nil, true, "x", "", -1, 1e300, []any{}, map[string]any{}, []any{nil}, []any{1e308, -1e308}, json.Number("1e400"), strings.Repeat("y", 1<<16)}
		return eachJSON(b, func(v any) any { return changeNode(r, v, func(any) any { return odd[r.IntN(len(odd))] }) })
	}},
	{"a value repeated", func(r *rand.Rand, b []byte) []byte {
		return eachJSON(b, func(v any) any {
			return changeNode(r, v, func(v any) any { return slices.Repeat([]any{v}, 1+r.IntN(2000)) })
		})
	}},
	{"a list shortened", func(r *rand.Rand, b []byte) []byte {
		return eachJSON(b, func(v any) any {
			return changeNode(r, v, func(v any) any {
				if list, ok := v.([]any); ok && len(list) > 0 {
					return list[:r.IntN(len(list))]
				}
				return []any{v}
			})
		})
	}},
	{"a key removed", func(r *rand.Rand, b []byte) []byte {
		return eachJSON(b, func(v any) any {
			return changeNode(r, v, func(v any) any {
				m, ok := v.(map[string]any)
				if !ok {
					return nil
				}
				for _, k := range slices.Sorted(maps.Keys(m)) {
					if r.IntN(3) == 0 {
						delete(m, k)
					}
				}
				return m
			})
		})
	}},
	{"deeply nested", func(r *rand.Rand, b []byte) []byte {
		open, shut := "[", "]"
		if r.IntN(2) == 0 {
			open, shut = `{"a":`, "}"
		}
		at := bytes.IndexByte(b, ':') + 1
		if at == 0 {
			at = r.IntN(len(b))
		}
		n := []int{500, 9_000, 100_000}[r.IntN(3)]
		return slices.Insert(b, at, []byte(strings.Repeat(open, n)+"1"+strings.Repeat(shut, n)+",\"b\":")...)
	}},
	{"two keys alike", func(r *rand.Rand, b []byte) []byte {
		return bytes.Replace(b, []byte("{"), []byte(`{"ttfts":1,"ttfts":[],"duration":-5,"duration":"x",`), 1+r.IntN(5))
	}},
}

// eachJSON changes a document, or each line of one that has a document a line.
func eachJSON(b []byte, change func(any) any) []byte {
	var v any
	if json.Unmarshal(b, &v) == nil {
		if out, err := json.Marshal(change(v)); err == nil {
			return out
		}
		return b
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	for i, line := range lines {
		if json.Unmarshal(line, &v) == nil && i%3 == 0 {
			if out, err := json.Marshal(change(v)); err == nil {
				lines[i] = append(out, '\n')
			}
		}
	}
	return bytes.Join(lines, nil)
}

// changeNode changes one node below v, or v itself.
func changeNode(r *rand.Rand, v any, change func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		if keys := slices.Sorted(maps.Keys(v)); len(keys) > 0 && r.IntN(8) > 0 {
			k := keys[r.IntN(len(keys))]
			v[k] = changeNode(r, v[k], change)
			return v
		}
	case []any:
		if len(v) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(v))
			v[i] = changeNode(r, v[i], change)
			return v
		}
	}
	return change(v)
}

// cells are a table's; the exported one has no quoted cell.
func cells(b []byte, change func([][]string) [][]string) []byte {
	var rows [][]string
	for line := range strings.Lines(string(b)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), ","))
	}
	var out strings.Builder
	for _, row := range change(rows) {
		out.WriteString(strings.Join(row, ",") + "\n")
	}
	return []byte(out.String())
}

var csvWays = []mutation{
	{"a column removed", func(r *rand.Rand, b []byte) []byte {
		return cells(b, func(rows [][]string) [][]string {
			at := r.IntN(len(rows[0]))
			for i, row := range rows {
				if at < len(row) {
					rows[i] = slices.Delete(row, at, at+1)
				}
			}
			return rows
		})
	}},
	{"a column twice", func(r *rand.Rand, b []byte) []byte {
		return cells(b, func(rows [][]string) [][]string {
			at := r.IntN(len(rows[0]))
			for i, row := range rows {
				if at < len(row) {
					rows[i] = append(row, row[at])
				}
			}
			return rows
		})
	}},
	{"a column odd", func(r *rand.Rand, b []byte) []byte {
		return cells(b, func(rows [][]string) [][]string {
			at := r.IntN(len(rows[0]))
			for _, row := range rows[min(1, len(rows)):] {
				if at < len(row) {
					row[at] = oddNumbers[r.IntN(len(oddNumbers))]
				}
			}
			return rows
		})
	}},
	{"a quote open", func(r *rand.Rand, b []byte) []byte { return slices.Insert(b, r.IntN(len(b)+1), '"') }},
	{"another separator", func(r *rand.Rand, b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(","), []byte([]string{";", "\t", ",,", "|"}[r.IntN(4)]))
	}},
}

// parquetWays change what a Parquet file says of itself: the metadata at its end, whose length is
// in the eight bytes after it, and the headers of pages at the begin of each.
var parquetWays = []mutation{
	{"metadata changed", func(r *rand.Rand, b []byte) []byte {
		from := parquetFooter(b)
		for range 1 + r.IntN(4) {
			b[from+r.IntN(len(b)-from)] = []byte{0xff, 0x80, 0x00, 0x7f, 0xfe, byte(r.Uint32())}[r.IntN(6)]
		}
		return b
	}},
	{"huge claims", func(r *rand.Rand, b []byte) []byte { // a variable-length integer of 2^62 over what is there
		from := parquetFooter(b)
		at := from + r.IntN(len(b)-from)
		copy(b[at:max(at, len(b)-8)], "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f")
		return b
	}},
	{"length of the metadata", func(r *rand.Rand, b []byte) []byte {
		if len(b) < 8 {
			return b
		}
		binary.LittleEndian.PutUint32(b[len(b)-8:], []uint32{0, 1, uint32(len(b)), 1 << 31, 1<<32 - 1, r.Uint32() % uint32(2*len(b))}[r.IntN(6)])
		return b
	}},
	{"pages changed", func(r *rand.Rand, b []byte) []byte {
		to := parquetFooter(b)
		for range 1 + r.IntN(8) {
			b[r.IntN(max(1, to))] = []byte{0xff, 0x80, 0x00, 0x7f}[r.IntN(4)]
		}
		return b
	}},
	{"huge pages", func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(max(1, parquetFooter(b)))
		copy(b[at:], "\xfe\xff\xff\xff\x0f")
		return b
	}},
}

// parquetFooter is where the metadata of a Parquet file begins, 0 where it does not say.
func parquetFooter(b []byte) int {
	if len(b) < 12 {
		return 0
	}
	return max(0, len(b)-8-int(binary.LittleEndian.Uint32(b[len(b)-8:])))
}
