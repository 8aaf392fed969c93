package result

import "testing"

func TestPodsText(t *testing.T) {
	pods := []Pod{{Node: "b"}, {Node: "a"}, {Node: "b", Forwarded: true}, {}}
	if got, want := PodsText(pods), "b (2 pods), a, a node that is not known"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !(Header{Pods: pods}).Forwarded() || (Header{Pods: pods[:2]}).Forwarded() {
		t.Error("who is reached through the API server is mixed up")
	}
}
