package lab

import (
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/study"
)

func TestPatience(t *testing.T) {
	p := newPatience()
	if got := p.whole("vllm"); got != 2*time.Hour || p.expect("vllm") != "" {
		t.Errorf("at first %v (%s)", got, p.expect("vllm"))
	}
	p.learn("vllm", 63*time.Minute+400*time.Millisecond)
	p.learn("vllm", time.Minute)
	if got, said := p.whole("vllm"), p.expect("vllm"); got != 3*(63*time.Minute+400*time.Millisecond) || said != "the longest start so far took 1h3m0s" {
		t.Errorf("after a start of 63 minutes %v (%s)", got, said)
	}
	if p.whole("sglang") != 2*time.Hour {
		t.Error("one engine's starts say nothing of another's")
	}
	if p.extend("sglang", &deploy.LateError{Limit: time.Hour, Silence: true}) {
		t.Error("a silent start is tried again")
	}
	if !p.extend("sglang", &deploy.LateError{Limit: 2 * time.Hour}) || p.whole("sglang") != 4*time.Hour {
		t.Errorf("after a start that was late %v", p.whole("sglang"))
	}
	if p.extend("sglang", &deploy.LateError{Limit: 4 * time.Hour}) {
		t.Error("a start that was late twice is tried a third time")
	}
}

// TestLimits: what the study says of a start outranks what was measured and what is usual.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name           string
		ready, silence float64
		took           time.Duration
		whole, quiet   time.Duration
	}{
		{name: "nothing said", whole: 2 * time.Hour},
		{name: "nothing said after a long start", took: time.Hour, whole: 3 * time.Hour},
		{name: "silence", silence: 60, whole: 2 * time.Hour, quiet: time.Minute},
		{name: "the whole", ready: 3600, took: time.Hour, whole: time.Hour, quiet: time.Hour},
		{name: "both", ready: 3600, silence: 60, whole: time.Hour, quiet: time.Minute},
	} {
		s := &study.Study{File: &study.File{}}
		s.Runtime.Kind, s.Runtime.ReadyS, s.Runtime.SilenceS = study.Process, c.ready, c.silence
		l := &launcher{Study: s, patience: newPatience()}
		if c.took > 0 {
			l.patience.learn("vllm", c.took)
		}
		if whole, quiet := l.limits("vllm"); whole != c.whole || quiet != c.quiet {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, whole, quiet, c.whole, c.quiet)
		}
	}
}
