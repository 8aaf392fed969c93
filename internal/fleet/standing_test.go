package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perflab/internal/fleet"
	"perflab/internal/fleet/order"
	"perflab/internal/generator"
	"perflab/internal/test/fleettest"
)

// until asks for the fleet until it is as it shall be: what agents say arrives when it does.
func until(t *testing.T, w *fleet.Watch, is func(fleet.Standing) bool) fleet.Standing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		st, err := w.Standing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if is(st) {
			return st
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatalf("it stays %+v", st)
		}
	}
}

func watch(t *testing.T, f *fleettest.Fleet) *fleet.Watch {
	t.Helper()
	w, err := f.Leader.Watch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestStanding(t *testing.T) {
	f := fleettest.Open(t)
	w := watch(t, f)
	b := f.Join(t, order.Facts{Name: "b", Streams: 1000, SelfCheck: &generator.SelfCheck{MaxEvents: 10_000}})
	a := f.Join(t, order.Facts{Name: "a", Epoch: 4, Work: &order.Work{State: "sends", Shard: 1, Of: 2, Who: "ada"}, Streams: 1000})
	old := f.Join(t, order.Facts{Name: "old", Version: "v0.0.1-other", Streams: 1000})
	f.Join(t, order.Facts{Name: "silent"})
	a.Live(t, order.Progress{Sent: 7, InFlight: 3, Tokens: 50})
	st := until(t, w, func(st fleet.Standing) bool {
		for _, x := range []*fleettest.Agent{a, b, old} {
			x.Here(t)
		}
		return len(st.Agents) == 3 && len(st.Loads) == 1 && st.Loads[0].Pace != nil
	})
	if st.Agents[0].ID != a.ID || st.Agents[1].ID != b.ID || !st.Agents[2].Other || st.Agents[1].Other || !st.Agents[0].Member || st.Agents[0].From == "" {
		t.Errorf("%+v", st.Agents)
	}
	if len(st.Away) != 1 || st.Away[0].Name != "silent" || st.Away[0].Heard != nil || !st.Away[0].Connected {
		t.Errorf("%+v", st.Away)
	}
	if l := st.Loads[0]; l.Epoch != 4 || l.Who != "ada" || l.Shards != 2 || l.Parts[0].Agent != a.ID || l.Pace.Sent != 7 || l.Pace.TokensPerS != nil {
		t.Errorf("%+v", l)
	}
	if st.Idle.Agents != 1 || st.Idle.Connections != 1000 || st.Idle.Events != 7000 {
		t.Errorf("only b is idle and of this version: %+v", st.Idle)
	}
	// a says nothing more: it is away in seconds, and its load with it.
	st = until(t, w, func(st fleet.Standing) bool { return len(st.Agents) == 0 })
	if len(st.Away) != 4 || st.Away[0].Heard == nil || len(st.Loads) != 0 {
		t.Errorf("%+v", st)
	}
}

func TestInviteAndRemove(t *testing.T) {
	f := fleettest.Open(t)
	w := watch(t, f)
	i, err := w.Invite(t.Context(), fleet.NewInvitation{Host: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(i.Until); left < 50*time.Minute || left > time.Hour || i.Command != "perflab agent --join '"+i.URL+"'" || !strings.HasPrefix(i.URL, "perflab://localhost:") {
		t.Errorf("%+v", i)
	}
	a := f.Join(t, order.Facts{Name: "a"})
	until(t, w, func(st fleet.Standing) bool {
		a.Here(t)
		return len(st.Agents) == 1
	})
	if err := w.Remove(t.Context(), "nobody"); !errors.Is(err, fleet.ErrStranger) {
		t.Errorf("a stranger: %v", err)
	}
	if err := w.Remove(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if st := until(t, w, func(st fleet.Standing) bool { return true }); len(st.Agents) != 0 || len(st.Away) != 0 {
		t.Errorf("a removed agent is shown: %+v", st)
	}
	if err := w.Remove(t.Context(), a.ID); !errors.Is(err, fleet.ErrStranger) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := w.Invite(t.Context(), fleet.NewInvitation{Host: "x y"}); err == nil {
		t.Error("a host that is none")
	}
	f.Hub.Close()
	if _, err := w.Standing(t.Context()); err == nil {
		t.Error("a hub that is gone says who its members are")
	}
}
