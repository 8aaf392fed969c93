package generator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFleetClient(t *testing.T) {
	f := &Fleet{Agents: []Agent{
		{Name: "a", Client: &Client{Wall: 10 * time.Second, CPU: 2 * time.Second, Procs: 4, CPUs: 2, GCPause: 3, GCMax: 2, SchedP50: 1, SchedP99: 5, SchedMax: 40, Sockets: 7, Opened: 8, Stolen: 0.1, Memory: 100, Unsent: 1}},
		{Name: "b", Client: &Client{Wall: 8 * time.Second, CPU: 6 * time.Second, Procs: 1, CPUs: 2, GCPause: 4, GCMax: 1, SchedP50: 2, SchedP99: 9, SchedMax: 30, Sockets: 5, Opened: 5, Stolen: 0.2, Memory: 90}},
	}}
	want := Client{Wall: 8 * time.Second, CPU: 6 * time.Second, Procs: 1, CPUs: 2, GCPause: 7, GCMax: 2, SchedP50: 2, SchedP99: 9, SchedMax: 40, Sockets: 12, Opened: 13, Stolen: 0.2, Memory: 100, Unsent: 1}
	if d := cmp.Diff(want, f.Client()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	f.Agents[0].Client.Partial, f.Agents[0].Client.StopNote = true, "interrupted"
	f.Agents[1].Lost, f.Agents[1].Client = "no word for 5 s", nil
	got := f.Client()
	if !got.Partial || got.StopNote != "agent a stopped: interrupted; agent b was lost: no word for 5 s" {
		t.Errorf("partial %v: %q", got.Partial, got.StopNote)
	}
	if d := cmp.Diff([]int{2}, f.Lost()); d != "" {
		t.Error(d)
	}
}

func TestFleetNames(t *testing.T) {
	f := &Fleet{Agents: []Agent{{Name: "a", Limit: 22}, {ID: "UX1", Limit: 21}, {Limit: 21}}}
	for n, want := range map[int]string{0: "", 1: "a", 2: "UX1", 3: "number 3", 4: ""} {
		if got := f.Name(n); got != want {
			t.Errorf("agent %d is %q, want %q", n, got, want)
		}
	}
	if got := f.String(); got != "3 agents: a, UX1, number 3" {
		t.Errorf("the fleet is %q", got)
	}
	if got := f.Limits(); got != "22 + 21 + 21" {
		t.Errorf("limits %q", got)
	}
	var none *Fleet
	if none.String() != "" || none.Limits() != "" || none.Name(1) != "" || none.Lost() != nil {
		t.Error("no fleet has names")
	}
	if one := (&Fleet{Agents: f.Agents[:1]}).Limits(); one != "" {
		t.Errorf("one agent splits the limit: %q", one)
	}
}

func TestBusy(t *testing.T) {
	for _, tt := range []struct {
		c    Client
		want float64
		ok   bool
	}{
		{Client{Wall: 10, CPU: 5, Procs: 4, CPUs: 2}, 0.25, true},
		{Client{Wall: 10, CPU: 5, Procs: 1}, 0.5, true},
		{Client{CPU: 5, Procs: 1}, 0, false},
		{Client{Wall: 10, CPU: 5}, 0, false},
	} {
		if got, ok := tt.c.Busy(); got != tt.want || ok != tt.ok {
			t.Errorf("%+v: %v, %v", tt.c, got, ok)
		}
	}
}
