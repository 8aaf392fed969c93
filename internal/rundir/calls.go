package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"perflab/internal/input"
	"perflab/internal/result"
)

// readCalls takes the calls in, for figures by the definitions that the header names.
func (r *Run) readCalls(again bool) error {
	opt, err := r.Options()
	if err != nil {
		opt = result.Options{} // Resummarise says what is wrong
	}
	if !again {
		if r.calls = readDigest(r.dir, r.Header, opt); r.calls != nil {
			r.Calls, r.Every = r.calls.Kept()
			return nil
		}
	}
	if r.calls, err = result.NewAccumulator(r.Header, opt); err != nil {
		return err
	}
	for c, err := range Calls(r.dir) {
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil {
			r.Damage = err.Error()
			break
		}
		r.calls.Add(&c)
	}
	r.Calls, r.Every = r.calls.Kept()
	return nil
}

// Calls yields the calls of the run in a directory, as its files have them. An error is
// the last that it yields.
func Calls(dir string) iter.Seq2[result.Call, error] {
	if _, err := os.Stat(filepath.Join(dir, UncountedFile)); err == nil {
		return withUncounted(dir)
	}
	return readCallFile(dir, CallsFile)
}

// withUncounted yields the calls of a run that ended while calls of it were still to be
// counted: first those that were.
func withUncounted(dir string) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		counted := map[int]bool{}
		var fault error // of the calls that were counted, whose last line a kill may have cut
		for c, err := range readCallFile(dir, CallsFile) {
			if err != nil {
				fault = err
				break
			}
			counted[c.Index] = true
			if !yield(c, nil) {
				return
			}
		}
		for c, err := range readCallFile(dir, UncountedFile) {
			if err != nil {
				fault = cmp.Or(fault, err)
				break
			}
			if !counted[c.Index] && !yield(c, nil) {
				return
			}
		}
		if fault != nil {
			yield(result.Call{}, fault)
		}
	}
}

// mostLine is the longest line of a file that is read: a call of a million chunks has 20 MiB.
const mostLine = 64 << 20

func readCallFile(dir, name string) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			yield(result.Call{}, fmt.Errorf("read run: %w", err))
			return
		}
		defer f.Close()
		for c, err := range result.ReadCalls(input.Lines(f, "the file", mostLine)) {
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// All yields every call of the run, as far as they can be read.
func (r *Run) All() iter.Seq[result.Call] {
	if r.Every <= 1 {
		return slices.Values(r.Calls)
	}
	return func(yield func(result.Call) bool) {
		for c, err := range Calls(r.dir) {
			if err != nil || !yield(c) {
				return
			}
		}
	}
}

// Whole are all calls, nil of a run that is too long to have them in memory.
func (r *Run) Whole() []result.Call {
	if r.Every > 1 {
		return nil
	}
	return r.Calls
}

// Len is the number of the run's calls.
func (r *Run) Len() int { return r.calls.Total }

// Condensed gives the writer what is known of the calls that were added. Of a run of
// which not all calls fit into memory Finish keeps it beside them.
func (w *Writer) Condensed(calls *result.Accumulator) { w.condensed = calls }

// writeDigest keeps the digest of a long run.
func (w *Writer) writeDigest() error {
	if w.condensed == nil {
		return nil
	}
	if _, every := w.condensed.Kept(); every == 1 {
		return nil
	}
	of, err := callsKey(w.tmp)
	if err != nil {
		return fmt.Errorf("write %s: %w", digestFile, err)
	}
	err = w.disk.Replace(filepath.Join(w.tmp, digestFile), 0o644, func(to io.Writer) error { return w.condensed.Save(to, of) })
	if err != nil {
		return fmt.Errorf("write %s: %w", digestFile, err)
	}
	return nil
}

// readDigest reads what is known of the calls in dir; nil where nothing is, or where
// the calls are others: they are the truth, and are read then.
func readDigest(dir string, h result.Header, o result.Options) *result.Accumulator {
	f, err := os.Open(filepath.Join(dir, digestFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	of, err := callsKey(dir)
	if err != nil {
		return nil
	}
	calls, err := result.Load(f, h, o, of)
	if err != nil {
		return nil
	}
	return calls
}

// keyBytes is how much of the end of the calls' file is in its key: to read all of a
// file of tens of GB takes minutes.
const keyBytes = 1 << 20

// callsKey tells the file of calls in dir from others: by its size and its end.
func callsKey(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, CallsFile))
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-keyBytes)
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(f, from, info.Size()-from)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes, the last %d with the checksum %08x", info.Size(), info.Size()-from, sum.Sum32()), nil
}
