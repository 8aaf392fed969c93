package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/result"
)

// gone is a leader that takes nothing.
type gone struct{}

func (gone) Send(context.Context, uint64, []byte) error { return errors.New("nobody is there") }

// leave leaves the directory of a load: so many calls in its spool, and a record; nil: none.
func leave(t *testing.T, dir string, epoch uint64, calls int, r *record) {
	t.Helper()
	load := filepath.Join(dir, strconv.FormatUint(epoch, 10))
	if err := os.MkdirAll(filepath.Join(load, "dataset_path"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r != nil {
		r.Epoch = epoch
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(load, recordFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if calls == 0 {
		return
	}
	s, err := ship.New(gone{}, ship.Options{Dir: filepath.Join(load, spoolDir)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		s.Add(&result.Call{Index: i})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Close(ctx); err == nil {
		t.Fatal("the leader took them")
	}
}

func ended(ago time.Duration) *record {
	r := &record{Who: "ada", Ended: time.Now().Add(-ago), Done: &order.Done{Sent: 3}}
	r.Header.Spec = []byte("{}")
	return r
}

// TestSweep: when an agent starts it keeps what nobody took, removes what is of no use, and says so.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	bare := ended(0)
	bare.Done, bare.Ended = nil, time.Time{}
	leave(t, dir, 1, 0, nil)                      // its preparation failed
	leave(t, dir, 2, 0, bare)                     // it was prepared, and its process ended
	leave(t, dir, 3, 5, nil)                      // an agent that wrote no record
	leave(t, dir, 4, 6, bare)                     // its process ended in the middle
	leave(t, dir, 5, 7, ended(time.Hour))         // its leader was gone
	leave(t, dir, 6, 0, ended(time.Hour))         // likewise, and it had all calls
	leave(t, dir, 7, 8, ended(keepFor+time.Hour)) // too long ago
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	k := openKeeper(dir, slog.New(slog.NewTextHandler(&log, nil)))
	all, gave := k.list()
	var kept []uint64
	calls := map[uint64]int{3: 5, 4: 6, 5: 7, 6: 0}
	for _, x := range all {
		kept = append(kept, x.Epoch)
		if x.Calls != calls[x.Epoch] || x.Until.Sub(x.Ended) != keepFor || time.Since(x.Ended) > 2*time.Hour || (x.Who == "ada") != (x.Epoch != 3) {
			t.Errorf("%+v", x)
		}
		if _, err := os.Stat(filepath.Join(k.of(x.Epoch), "dataset_path")); err == nil {
			t.Errorf("load %d still has its workload's files", x.Epoch)
		}
	}
	if !slices.Equal(kept, []uint64{3, 4, 5, 6}) || len(gave) != 1 || gave[0].Epoch != 7 || gave[0].Calls != 8 {
		t.Errorf("kept %v, gave up %+v", kept, gave)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, text := range []string{"load=5 who=ada calls=7", "calls that nobody fetched are removed", "nobody fetched them for 14 days"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("the log has no %q:\n%s", text, log.String())
		}
	}
}

// TestTooMuch: of more than an agent keeps the oldest goes.
func TestTooMuch(t *testing.T) {
	k := openKeeper(t.TempDir(), slog.New(slog.DiscardHandler))
	for i := range uint64(mostKept + 2) {
		x := &keptLoad{dir: filepath.Join(k.dir, strconv.FormatUint(i, 10))}
		x.Epoch, x.Until = i, time.Now().Add(time.Hour)
		k.all = append(k.all, x)
	}
	k.lapse(time.Now())
	if all, gave := k.list(); len(all) != mostKept || all[0].Epoch != 2 || len(gave) != 2 {
		t.Errorf("%d are kept, %+v", len(all), gave)
	}
	for _, x := range k.all {
		x.Bytes = mostBytes / 10
	}
	k.lapse(time.Now())
	if all, gave := k.list(); len(all) != 10 || all[9].Epoch != mostKept+1 || len(gave) != mostGaveUp {
		t.Errorf("%d are kept, %d were given up", len(all), len(gave))
	}
	k.all[0].Bytes = 2 * mostBytes
	k.all = k.all[:1]
	k.lapse(time.Now())
	if all, _ := k.list(); len(all) != 1 {
		t.Error("the only one is not kept")
	}
}

// TestForget: what was fetched goes, with its directory.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	leave(t, dir, 5, 7, ended(time.Hour))
	k := openKeeper(dir, slog.New(slog.DiscardHandler))
	p, err := k.part(5)
	if err != nil || len(p.Batches) != 1 || p.Header == nil || p.Done == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	batch, err := k.batch(order.BatchOf{Load: order.Load{Epoch: 5}, Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	if calls, err := ship.Calls(1, batch); err != nil || len(calls) != 7 {
		t.Errorf("%d calls, %v", len(calls), err)
	}
	if _, err := k.batch(order.BatchOf{Load: order.Load{Epoch: 5}, Seq: 2}); err == nil {
		t.Error("there is a batch that was never made")
	}
	if err := k.forget(5); err != nil {
		t.Error(err)
	}
	if err := k.forget(5); err == nil {
		t.Error("it is forgotten twice")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
