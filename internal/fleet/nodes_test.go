package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/workload"
)

// TestNodeOfADeadLeader: who holds a node has its agent send a load also where that is still at one of a leader that was
// killed; others wait for it. The claim of a leader that lives is not passed over.
func TestNodeOfADeadLeader(t *testing.T) {
	e := startEngine(t, time.Millisecond)
	s := startSite(t, 1, func(int) time.Duration { return 0 })
	conn := s.hub.Conn()
	one := func(all []fleet.Agent) bool { return len(all) == 1 }
	a := s.leader.Gather(t.Context(), one)[0]
	epoch, err := conn.Next(t.Context(), "epoch")
	if err != nil {
		t.Fatal(err)
	}
	left := order.Job{Load: order.Load{Epoch: epoch}, ShardJob: bench.ShardJob{Spec: spec(e, workload.Spec{NumPrompts: 5}), Of: 1}}
	if _, err := order.Ask[order.Ready](t.Context(), conn, bus.Do(a.ID, order.Prepare), left); err != nil {
		t.Fatal(err)
	}
	busy := func(all []fleet.Agent) bool {
		return slices.ContainsFunc(all, func(a fleet.Agent) bool { return !a.Idle() })
	}
	for !busy(s.leader.Gather(t.Context(), busy)) {
	}
	if _, err := s.leader.Crew(t.Context(), fleet.Choice{Names: []string{a.ID}}); err == nil || !strings.Contains(err.Error(), "at work") {
		t.Errorf("anybody's load: %v", err)
	}
	claim, err := conn.Claim(t.Context(), "agent."+a.ID, []byte("who was killed"), 2*time.Second) // and renews it no more
	if err != nil {
		t.Fatal(err)
	}
	out, err := bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 6}), Crew: s.leader.NodeCrew(a.ID)}.Run(t.Context())
	if err != nil || out.Summary.Figures["completed"] != 6 {
		t.Fatalf("the node's own load: %v", err)
	}
	if err := claim.Renew(t.Context()); err == nil {
		t.Error("a claim was passed over")
	}
	if _, err := (bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 6}), Crew: s.leader.NodeCrew("nobody")}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "none of the 1 that are there") {
		t.Errorf("an agent that is not there: %v", err)
	}
}
