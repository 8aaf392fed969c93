package node

import (
	"encoding/json"
	"testing"
	"time"
)

// TestWatch: an agent says who holds it and what it runs, for as long as that is so, without waiting for an engine that is
// being started, and without secrets.
func TestWatch(t *testing.T) {
	var w Watch
	if w.Now() != nil || (*Watch)(nil).Now() != nil {
		t.Error("nobody serves, and somebody holds it")
	}
	s := serving(t)
	w.of(s)
	if w.Now() != nil {
		t.Error("nobody came, and somebody holds it")
	}
	before := time.Now()
	if _, err := give[held](s, wordHold, 3, holdOrder{Lease: time.Minute, Who: "ada on lab", Study: "nodes"}); err != nil {
		t.Fatal(err)
	}
	if h := w.Now(); h == nil || h.Who != "ada on lab" || h.Study != "nodes" || h.Since.Before(before.Truncate(0)) || len(h.Runs) > 0 {
		t.Errorf("held: %+v", h)
	}
	spawnFake(t, s, 3, 1)
	h := w.Now()
	if h == nil || len(h.Runs) != 1 || h.Runs[0].Name != "replica-0" || h.Runs[0].Kind != "process" || h.Runs[0].Command == "" || h.Runs[0].Since.Before(h.Since) {
		t.Fatalf("held: %+v", h)
	}
	s.holder.mu.Lock() // as it is while an order is carried out
	if again := w.Now(); again != h {
		t.Errorf("while the holder is busy: %+v", again)
	}
	s.holder.engines[2] = &engine{started: make(chan struct{})}
	s.holder.mu.Unlock()
	if again := w.Now(); len(again.Runs) != 1 {
		t.Errorf("while an engine is started: %+v", again)
	}
	s.holder.mu.Lock()
	delete(s.holder.engines, 2)
	s.holder.mu.Unlock()
	secret := &engine{argv: []string{"vllm", "serve", "--api-key", "very-secret-key"}, Running: s.holder.engines[1].Running}
	if text := secret.describe().Command; text != "vllm serve --api-key [redacted]" {
		t.Errorf("the command is %q", text)
	}
	if _, err := give[stopped](s, wordStop, 3, stopOrder{Number: 1, Forget: true}); err != nil {
		t.Fatal(err)
	}
	if h := w.Now(); h == nil || len(h.Runs) > 0 {
		t.Errorf("after its end: %+v", h)
	}
	if _, err := give[json.RawMessage](s, wordLeave, 3, nil); err != nil {
		t.Fatal(err)
	}
	if h := w.Now(); h != nil {
		t.Errorf("after the holder has left: %+v", h)
	}
}
