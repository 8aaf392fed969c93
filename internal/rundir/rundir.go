package rundir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"perflab/internal/durable"
	"perflab/internal/field"
	"perflab/internal/gauge"
	"perflab/internal/input"
	"perflab/internal/result"
	"perflab/internal/reuse"
)

// Names in a run directory. The directory is the truth about a run: a header
// written before the first request, every call as it ended, what the client
// itself used, the readings beside the calls, and the figures computed from them.
const (
	headerFile  = "header.json"
	CallsFile   = "calls.jsonl"
	clientFile  = "client.json"
	summaryFile = "summary.json"
	digestFile  = "calls.digest" // of a run too long to read its calls for each report: what figures need of them

	TelemetryFile = "telemetry.jsonl"

	UncountedFile = "uncounted.jsonl" // of a run under way; see AddUncounted
)

// Schema names the format of headers; it changes when they do.
const Schema = "perflab.run/1"

// Writer writes one run directory. It works in DIR.tmp and renames at the
// end, so that a directory without the suffix is always complete; a .tmp left
// behind is a partial run that can still be summarised.
type Writer struct {
	dir  string // final name
	tmp  string
	disk durable.Disk

	calls     *lineFile
	uncounted *lineFile // nil: there is none; see AddUncounted
	readings  *lineFile // nil: there is none; see KeepReadings

	prompts []reuse.Prompt // see KeepPrompts

	condensed *result.Accumulator // nil: nobody gave it; see Condensed
	reopened  bool                // the calls are in a file beside those of before; see Reopen
}

// Free refuses the name of a directory that exists, or of a run that never
// finished: no call that was measured is overwritten.
func Free(dir string) error {
	if dir == "" {
		return nil
	}
	dir = filepath.Clean(dir)
	if _, err := os.Stat(dir); err == nil {
		return field.Errorf("", "run directory %s exists already: choose another [out] or remove it", dir)
	}
	if _, err := os.Stat(dir + ".tmp"); err == nil {
		return field.Errorf("", "%s.tmp holds a run that is under way or was cut off, with its calls so far: choose another [out] or remove it", dir)
	}
	return nil
}

// ClearPartial makes room for a run of a study in place of one that was cut
// off, which its trial does not count.
func ClearPartial(dir string) error {
	if err := os.RemoveAll(dir + ".tmp"); err != nil {
		return fmt.Errorf("clear %s.tmp: %w", dir, err)
	}
	return nil
}

// Create begins a run directory.
func Create(dir string, h result.Header) (*Writer, error) { return create(durable.Disk{}, dir, h) }

func create(disk durable.Disk, dir string, h result.Header) (*Writer, error) {
	if err := Free(dir); err != nil {
		return nil, err
	}
	dir = filepath.Clean(dir)
	tmp := dir + ".tmp"
	if err := disk.MkdirAll(tmp); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := writeJSON(disk, filepath.Join(tmp, headerFile), h); err != nil {
		return nil, err
	}
	calls := createLines(filepath.Join(tmp, CallsFile))
	if calls.err != nil {
		return nil, fmt.Errorf("create run directory: %w", calls.err)
	}
	return &Writer{dir: dir, tmp: tmp, disk: disk, calls: calls}, nil
}

// reopenedFile has the calls of a run that is gone on with, until all are there.
const reopenedFile = CallsFile + ".new"

// Reopen goes on with a run that was cut off: the caller adds all of its calls, those that are there among
// them, in whose place they come with Finish. Until then the directory is as it was.
func Reopen(dir string) (*Writer, error) {
	dir = filepath.Clean(dir)
	tmp := dir + ".tmp"
	if durable.Held(filepath.Join(tmp, CallsFile)) {
		return nil, field.Errorf("", "%s is a run that is under way: wait for its end", tmp)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil, field.Errorf("", "run directory %s is finished: nothing is added to it", dir)
	}
	if durable.Held(filepath.Join(tmp, reopenedFile)) {
		return nil, field.Errorf("", "another process completes %s: wait for its end", tmp)
	}
	calls := createLines(filepath.Join(tmp, reopenedFile))
	if calls.err != nil {
		return nil, fmt.Errorf("go on with %s: %w", tmp, calls.err)
	}
	return &Writer{dir: dir, tmp: tmp, calls: calls, reopened: true}, nil
}

// Save gives the kernel what was added, so that a kill of this process does not take it. Of no writer there is
// nothing to save.
func (w *Writer) Save() {
	if w == nil {
		return
	}
	w.calls.save()
	if w.uncounted != nil {
		w.uncounted.save()
	}
}

// Add appends one call. After a write error it does nothing: Finish tells the
// error, and the calls are still in memory.
func (w *Writer) Add(c *result.Call) { w.calls.add(c) }

// AddUncounted keeps a call that has ended but comes later, since its tokens are
// counted after the load. Until then a kill must not take it: it is in a file of
// its own, which has what Add was not given when the run is read, and goes with Finish.
// It is called by one goroutine.
func (w *Writer) AddUncounted(c *result.Call) {
	if w.uncounted == nil {
		w.uncounted = createLines(filepath.Join(w.tmp, UncountedFile))
	}
	w.uncounted.add(c)
}

// KeepReadings makes the file of readings and returns what appends one: while the run lasts, so that
// a kill does not take them. Finish replaces the file by all readings in their order, and tells what could not be
// written.
func (w *Writer) KeepReadings() (keep func(gauge.Reading)) {
	f := createLines(filepath.Join(w.tmp, TelemetryFile))
	w.readings = f
	return func(r gauge.Reading) {
		if line, err := json.Marshal(r); err == nil {
			f.add(encoded(line))
		}
	}
}

// encoded is JSON.
type encoded []byte

func (e encoded) AppendJSON(b []byte) []byte { return append(b, e...) }

// Rewrite replaces the header of the run that is under way.
func (w *Writer) Rewrite(h result.Header) error {
	return writeJSON(w.disk, filepath.Join(w.tmp, headerFile), h)
}

// Unfinished is the name that the directory has until it is finished.
func (w *Writer) Unfinished() string { return w.tmp }

// Abandon leaves the directory unfinished with all calls that were added, for
// a run that ends by an error of its own. After finish it does nothing.
func (w *Writer) Abandon() {
	_ = w.calls.close() // what cannot be written is not there: the error is the run's
	for _, f := range []*lineFile{w.uncounted, w.readings} {
		if f != nil {
			_ = f.close() // likewise
		}
	}
}

// Finish completes the directory, syncs all that is in it and gives it its
// name. Whatever could be written stays, in DIR.tmp, when it fails. Of a run
// that another client measured there is no record c of the client. Without
// readings there is no file of them.
func (w *Writer) Finish(c *result.Client, s *result.Summary, readings []gauge.Reading) error {
	if err := w.calls.close(); err != nil {
		return fmt.Errorf("keep the calls: %w", err)
	}
	if w.reopened {
		if err := w.disk.SyncTree(w.tmp); err != nil {
			return fmt.Errorf("keep the calls: %w", err)
		}
		if err := os.Rename(filepath.Join(w.tmp, reopenedFile), filepath.Join(w.tmp, CallsFile)); err != nil {
			return fmt.Errorf("keep the calls: %w", err)
		}
		_ = os.Remove(filepath.Join(w.tmp, UncountedFile)) // where it stays, its calls are known
	}
	if w.uncounted != nil { // all of them were added since
		_ = w.uncounted.close()
		_ = os.Remove(filepath.Join(w.tmp, UncountedFile)) // where it stays, its calls are known
	}
	if w.readings != nil { // which is written anew
		if _ = w.readings.close(); len(readings) == 0 {
			_ = os.Remove(filepath.Join(w.tmp, TelemetryFile))
		}
	}
	if c != nil {
		if err := writeJSON(w.disk, filepath.Join(w.tmp, clientFile), c); err != nil {
			return err
		}
	}
	if len(readings) > 0 {
		var b bytes.Buffer
		if err := gauge.Write(&b, readings); err != nil {
			return fmt.Errorf("encode %s: %w", TelemetryFile, err)
		}
		if err := writeFile(w.disk, filepath.Join(w.tmp, TelemetryFile), b.Bytes()); err != nil {
			return err
		}
	}
	if len(w.prompts) > 0 {
		if err := writePrompts(w.disk, filepath.Join(w.tmp, PromptsFile), w.prompts); err != nil {
			return err
		}
	}
	if err := writeJSON(w.disk, filepath.Join(w.tmp, summaryFile), s); err != nil {
		return err
	}
	if err := w.writeDigest(); err != nil {
		return err
	}
	if err := w.disk.Publish(w.tmp, w.dir); err != nil {
		return fmt.Errorf("name the run directory: %w", err)
	}
	return nil
}

// WriteJSON replaces a file as a whole, as WriteFile does.
func WriteJSON(path string, v any) error { return writeJSON(durable.Disk{}, path, v) }

func writeJSON(disk durable.Disk, path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writeFile(disk, path, append(b, '\n'))
}

// WriteFile replaces a file as a whole: a reader, and a power cut, sees the old
// or the new one.
func WriteFile(path string, b []byte) error { return writeFile(durable.Disk{}, path, b) }

func writeFile(disk durable.Disk, path string, b []byte) error {
	if err := disk.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Run is a run read back from its directory.
type Run struct {
	Header  result.Header
	Calls   []result.Call // all of them, or of a very long run one of Every so many; see All
	Every   int
	Pace    result.Pace    // once Resummarise was called
	Client  *result.Client // nil for a partial run
	Partial bool
	Damage  string // what could not be read, one sentence; empty for none

	Readings []gauge.Reading // beside the calls; of a run that was killed those until a second before
	Prompts  []reuse.Prompt  // what the prompts share; nil: nothing, or it is not known

	dir     string // that has the files
	calls   *result.Accumulator
	figures *result.Summary // of an imported run, as its file has them; nil for our own runs
}

// OpenRun reads a run directory, complete or partial. dir may be given with or
// without the .tmp of a partial run. Of a very long run it reads the digest of the
// calls, where there is one that belongs to them.
func OpenRun(dir string) (*Run, error) { return openRun(dir, false) }

// OpenCalls is OpenRun that reads every call again, whether there is a digest or not.
func OpenCalls(dir string) (*Run, error) { return openRun(dir, true) }

func openRun(dir string, again bool) (*Run, error) {
	r := &Run{}
	var err error
	if r.Header, dir, err = openHeader(dir); err != nil {
		return nil, err
	}
	r.dir = dir
	if err := r.readCalls(again); err != nil {
		return nil, err
	}
	if r.Header.Imported != nil {
		r.figures = &result.Summary{}
		if err := ReadJSON(filepath.Join(dir, summaryFile), r.figures); err != nil {
			return nil, fmt.Errorf("read imported run %s, whose figures are in %s alone: %w", dir, summaryFile, err)
		}
		return r, nil
	}
	var c result.Client
	if err := ReadJSON(filepath.Join(dir, clientFile), &c); err == nil {
		r.Client = &c
	}
	r.Partial = r.Client == nil || r.Client.Partial
	if r.Header.Predicted { // nobody sent it: whether it ended shows in the calls alone
		r.Partial = r.calls.Total < r.Header.Requests
	}
	if err := r.readReadings(filepath.Join(dir, TelemetryFile)); err != nil {
		r.Damage = cmp.Or(r.Damage, err.Error())
	}
	if r.Prompts, err = openPrompts(dir); err != nil {
		r.Damage = cmp.Or(r.Damage, err.Error())
	}
	return r, nil
}

// readReadings reads what was sampled beside the calls, where anything was.
func (r *Run) readReadings(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read readings: %w", err)
	}
	defer f.Close()
	for x, err := range gauge.Read(input.Lines(f, "the file", mostLine)) {
		if err != nil {
			return fmt.Errorf("%s: %w", TelemetryFile, err)
		}
		r.Readings = append(r.Readings, x)
	}
	gauge.Sort(r.Readings) // those of a run that was killed are as they came
	return nil
}

// ReadHeader reads the header of a run directory, complete or partial.
func ReadHeader(dir string) (result.Header, error) {
	h, _, err := openHeader(dir)
	return h, err
}

// openHeader returns the header and the directory that has it, which may be
// that of a partial run.
func openHeader(dir string) (h result.Header, where string, err error) {
	for _, where = range []string{dir, dir + ".tmp"} {
		err = ReadJSON(filepath.Join(where, headerFile), &h)
		if !errors.Is(err, fs.ErrNotExist) {
			return h, where, err
		}
	}
	return h, dir, fmt.Errorf("%s is no run directory: it has no %s", dir, headerFile)
}

// IsRun reports whether dir holds a run, complete or partial.
func IsRun(dir string) bool {
	for _, d := range []string{dir, dir + ".tmp"} {
		if _, err := os.Stat(filepath.Join(d, headerFile)); err == nil {
			return true
		}
	}
	return false
}

// mostJSON is the size of a JSON file that is read: a study.json of ten thousand
// trials, by far the largest, has a fifth of it.
const mostJSON = 1 << 30

func ReadJSON(path string, v any) error {
	b, err := input.File(path, mostJSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Path is where a file of the run's directory is, or would be.
func (r *Run) Path(name string) string { return filepath.Join(r.dir, name) }
