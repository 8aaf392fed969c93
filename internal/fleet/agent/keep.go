package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/generator"
	"perflab/internal/input"
	"perflab/internal/result"
)

// How long what no leader took is kept, and how much of it: the oldest goes first.
const (
	keepFor    = 14 * 24 * time.Hour
	mostKept   = 32      // loads
	mostBytes  = 8 << 30 // of all
	mostGaveUp = 8       // that are remembered
)

// Names in a load's directory.
const (
	spoolDir   = "calls"     // calls on their way
	recordFile = "load.json" // what the load is
)

// record is a load as its directory has it. No secret is in it.
type record struct {
	order.Load
	Who    string          `json:"who,omitempty"`
	What   string          `json:"load,omitempty"`
	Dir    string          `json:"dir,omitempty"`
	Agent  generator.Agent `json:"agent"`
	Header result.Header   `json:"header"`
	Ended  time.Time       `json:"ended,omitzero"` // zero: its process ended before
	Done   *order.Done     `json:"done,omitempty"` // likewise nil
}

// keeper has the loads that no leader took, each in a directory of its own.
type keeper struct {
	dir string // of all of them
	log *slog.Logger

	mu     sync.Mutex
	all    []*keptLoad // ascending by epoch
	gaveUp []order.GivenUp
}

// keptLoad is one of them.
type keptLoad struct {
	order.KeptLoad
	dir    string
	record *record    // nil: there is none that can be read
	left   *ship.Left // nil: the leader has every call, and does not know how the part ended
}

// openKeeper finds what earlier processes left, and removes what is of no use to anybody.
func openKeeper(dir string, log *slog.Logger) *keeper {
	k := &keeper{dir: dir, log: log}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("what is kept of earlier loads cannot be looked at", "dir", dir, "error", err)
	}
	for _, e := range entries {
		if epoch, err := strconv.ParseUint(e.Name(), 10, 64); err == nil {
			k.settle(epoch)
		}
	}
	k.lapse(time.Now())
	return k
}

// of is the directory of a load.
func (k *keeper) of(epoch uint64) string { return filepath.Join(k.dir, strconv.FormatUint(epoch, 10)) }

// write keeps what a load is, where its directory is.
func (k *keeper) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.of(r.Epoch), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(k.of(r.Epoch), recordFile), b, 0o600)
}

// mostRecord is the size of a record that is read.
const mostRecord = 64 << 20

func readRecord(dir string) (*record, error) {
	b, err := input.File(filepath.Join(dir, recordFile), mostRecord)
	if err != nil {
		return nil, err
	}
	r := &record{}
	return r, json.Unmarshal(b, r)
}

// settle keeps of a load that has ended what nobody took, and removes all else of it.
func (k *keeper) settle(epoch uint64) {
	dir := k.of(epoch)
	x := &keptLoad{dir: dir, KeptLoad: order.KeptLoad{Load: order.Load{Epoch: epoch}}}
	var err error
	if x.record, err = readRecord(dir); err != nil {
		x.record = nil // an agent of before wrote none, or the disk was full
	}
	if x.left, err = ship.Look(filepath.Join(dir, spoolDir)); err != nil {
		x.left = nil
		if !errors.Is(err, fs.ErrNotExist) {
			k.log.Warn("calls that are kept cannot be read: they stay where they are", "dir", dir, "error", err)
			return
		}
	}
	if x.left != nil && x.left.Calls == 0 {
		x.left = nil
	}
	if x.left == nil && (x.record == nil || x.record.Done == nil) {
		k.remove(dir, "nothing of it is wanted")
		return
	}
	x.describe()
	k.strip(dir)
	k.mu.Lock()
	k.all = append(slices.DeleteFunc(k.all, func(o *keptLoad) bool { return o.Epoch == epoch }), x)
	slices.SortFunc(k.all, func(a, b *keptLoad) int { return cmp.Compare(a.Epoch, b.Epoch) })
	k.mu.Unlock()
	k.log.Warn("a load's calls were not taken by its leader, and are kept: perflab fleet calls --fetch brings them, where the leader is",
		"load", epoch, "who", x.Who, "calls", x.Calls, "bytes", x.Bytes, "until", x.Until.Format(time.DateOnly), "dir", dir)
}

// describe makes what is said of the load.
func (x *keptLoad) describe() {
	if x.left != nil {
		x.Calls, x.Bytes = x.left.Calls, x.left.Bytes
	}
	if r := x.record; r != nil {
		x.Who, x.What, x.Dir, x.Ended = r.Who, r.What, r.Dir, r.Ended
		x.Shard, x.Of, x.Model, x.Simulated = r.Agent.Shard, r.Agent.Of, r.Header.Model, r.Header.Simulated
	}
	if x.Ended.IsZero() { // when the last of its files was written
		x.Ended = lastWritten(filepath.Join(x.dir, spoolDir))
	}
	x.Until = x.Ended.Add(keepFor)
}

// lastWritten is when something in a directory was written last.
func lastWritten(dir string) (last time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return time.Now() // it cannot be older than it is known to be
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last.UTC()
}

// strip removes of a load's directory what is not kept: files that were placed there for its workload.
func (k *keeper) strip(dir string) {
	entries, _ := os.ReadDir(dir) // what cannot be read stays
	for _, e := range entries {
		if e.Name() != spoolDir && e.Name() != recordFile {
			k.remove(filepath.Join(dir, e.Name()), "its workload's files are not needed any more")
		}
	}
}

// remove removes a directory. Where that fails it is said, and tried again with the next start of the agent.
func (k *keeper) remove(path, why string) {
	if err := os.RemoveAll(path); err != nil {
		k.log.Warn("what is not kept cannot be removed", "path", path, "why", why, "error", err)
	}
}

// lapse removes what is too old, and the oldest where it is too much.
func (k *keeper) lapse(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	bytes := int64(0)
	for _, x := range k.all {
		bytes += x.Bytes
	}
	for len(k.all) > 0 {
		why, at := "", slices.IndexFunc(k.all, func(x *keptLoad) bool { return now.After(x.Until) })
		switch {
		case at >= 0:
			why = fmt.Sprintf("nobody fetched them for %d days", keepFor/(24*time.Hour))
		case len(k.all) > mostKept:
			why = fmt.Sprintf("calls of more than %d loads are not kept", mostKept)
		case bytes > mostBytes && len(k.all) > 1:
			why = fmt.Sprintf("no more than %d GiB are kept", int64(mostBytes)>>30)
		default:
			return
		}
		at = max(0, at)
		x := k.all[at]
		k.all = slices.Delete(k.all, at, at+1)
		bytes -= x.Bytes
		k.log.Warn("calls that nobody fetched are removed", "load", x.Epoch, "who", x.Who, "calls", x.Calls, "why", why)
		k.remove(x.dir, why)
		k.gaveUp = append(k.gaveUp, order.GivenUp{Load: x.Load, Calls: x.Calls, Why: why})
		k.gaveUp = k.gaveUp[max(0, len(k.gaveUp)-mostGaveUp):]
	}
}

// list is what is kept, and what was given up.
func (k *keeper) list() ([]order.KeptLoad, []order.GivenUp) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]order.KeptLoad, len(k.all))
	for i, x := range k.all {
		out[i] = x.KeptLoad
	}
	return out, slices.Clone(k.gaveUp)
}

// find is what is kept of a load.
func (k *keeper) find(epoch uint64) (*keptLoad, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.all {
		if x.Epoch == epoch {
			return x, nil
		}
	}
	return nil, fmt.Errorf("this agent keeps nothing of load %d: it was fetched or dropped, or is still at work", epoch)
}

// part is all that is needed to fetch a load.
func (k *keeper) part(epoch uint64) (order.KeptPart, error) {
	x, err := k.find(epoch)
	if err != nil {
		return order.KeptPart{}, err
	}
	p := order.KeptPart{KeptLoad: x.KeptLoad, Batches: []uint64{}}
	last := uint64(0)
	if r := x.record; r != nil {
		p.Header, p.Agent, p.Done = &r.Header, &r.Agent, r.Done
		if r.Done != nil {
			last = r.Done.Batches
		}
	}
	if x.left != nil {
		p.Acked, p.Batches, p.Missing = x.left.Acked, x.left.Numbers(), x.left.Missing(last)
	}
	return p, nil
}

// batch is one of a load's batches.
func (k *keeper) batch(o order.BatchOf) ([]byte, error) {
	x, err := k.find(o.Epoch)
	if err != nil {
		return nil, err
	}
	if x.left == nil {
		return nil, fmt.Errorf("of load %d no calls are kept", o.Epoch)
	}
	return x.left.Read(o.Seq)
}

// forget removes what is kept of a load.
func (k *keeper) forget(epoch uint64) error {
	x, err := k.find(epoch)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(x.dir); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = slices.DeleteFunc(k.all, func(o *keptLoad) bool { return o == x })
	k.log.Info("calls that were kept are removed, as a leader said", "load", epoch, "calls", x.Calls)
	return nil
}
