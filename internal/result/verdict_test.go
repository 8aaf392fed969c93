package result

import "testing"

func TestVerdictText(t *testing.T) {
	v := Verdict{Status: Voided, Checks: []Check{
		{"simulated", Sound, "SIMULATED: a simulator answered, no hardware was measured"},
		{"tokens", Noted, "tokens differ"},
		{"dispatch_lag", Sound, "p99 0.1 ms"},
		{"gc", Sound, "short"},
		{"client_cpu", Voided, "busy"},
		{"self_check", Sound, "3 us"},
	}}
	const want = `Verdict: void (6 checks)
  SIMULATED: a simulator answered, no hardware was measured
  noted  tokens: tokens differ
  sound  dispatch_lag: p99 0.1 ms
  void   client_cpu: busy
  sound  self_check: 3 us
`
	if got := v.Text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := v.Why(); got != "busy" {
		t.Errorf("Why = %q, want the void check's sentence", got)
	}
}
