package field

import (
	"errors"
	"testing"
)

func TestPaths(t *testing.T) {
	err := Under("workloads[1]", errors.Join(
		Errorf("rate", "is %d: give one above 0", -1),
		Under(Index("turns", 2), Errorf("", "is empty")),
		errors.New("nothing to send"),
	))
	want := "workloads[1].rate: is -1: give one above 0\nworkloads[1].turns[2]: is empty\nworkloads[1]: nothing to send"
	if err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if all := All(err); len(all) != 3 || all[1].Path != "workloads[1].turns[2]" || all[2].Reason != "nothing to send" {
		t.Errorf("All = %v", all)
	}
	if All(nil) != nil || Under("x", nil) != nil {
		t.Error("no error became one")
	}
}

// TestMentions: a reason that names other values says their names as whoever
// shows it spells them, and keeps brackets of other kinds.
func TestMentions(t *testing.T) {
	err := Under("workloads[0]", Errorf("request_rate", "%v with [steps] of [%d]", 2.5, 3))
	e := All(err)[0]
	if e.Reason != "2.5 with steps of [3]" || e.Path != "workloads[0].request_rate" {
		t.Errorf("got %q at %q", e.Reason, e.Path)
	}
	if got := e.Says(func(path string) string { return "--" + path }); got != "2.5 with --steps of [3]" {
		t.Errorf("got %q", got)
	}
}
