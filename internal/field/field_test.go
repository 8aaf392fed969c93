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
