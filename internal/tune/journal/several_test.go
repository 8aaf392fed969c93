package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"perflab/internal/tune"
)

// crew is a strategy with a trial on each of three machines, each of which follows from the
// ends before it, in their order.
type crew struct {
	trials int
	queue  []tune.Proposal
	on     map[int]string // machine of what is open
	ends   []int
}

func newCrew() *crew {
	c := &crew{on: map[int]string{}}
	for _, node := range []string{"a", "b", "c"} {
		c.propose(node)
	}
	return c
}

func (c *crew) propose(node string) {
	if c.trials == 9 {
		return
	}
	c.trials++
	c.on[c.trials] = node
	c.queue = append(c.queue, tune.Proposal{Trial: c.trials, Stage: "s", Label: fmt.Sprint("after ", c.ends), Config: tune.Config{"x": "0"}, Workloads: []string{"w"}, Node: node})
}

func (c *crew) Ask() (p tune.Proposal, ok bool) {
	if len(c.queue) == 0 {
		return p, false
	}
	p, c.queue = c.queue[0], c.queue[1:]
	return p, true
}

func (c *crew) Tell(o tune.Observation) {
	c.ends = append(c.ends, o.Trial)
	node := c.on[o.Trial]
	delete(c.on, o.Trial)
	c.propose(node)
}

func (c *crew) Result() tune.Result { return tune.Result{} }

// shuffled is a Lab whose trials end in another order than they began.
type shuffled struct {
	open  []tune.Proposal
	deeds []int
	fails int // the trial that has an error
	ctx   context.Context
}

func (l *shuffled) Start(ctx context.Context, p tune.Proposal) {
	l.open, l.deeds, l.ctx = append(l.open, p), append(l.deeds, p.Trial), ctx
}

func (l *shuffled) Wait() (int, tune.Observation, error) {
	i := (len(l.deeds) * 7) % len(l.open)
	p := l.open[i]
	l.open = slices.Delete(l.open, i, i+1)
	if l.fails == p.Trial {
		return p.Trial, tune.Observation{}, errors.New("the disk is full")
	}
	return p.Trial, tune.Observation{Status: tune.Measured}, l.ctx.Err()
}

// TestSeveralOpen: a journal of trials that were under way at the same time is read again
// wherever it is cut; what had no end is measured again, and nothing else.
func TestSeveralOpen(t *testing.T) {
	d := &disk{}
	j, err := Open(d, Log{}, head)
	if err != nil {
		t.Fatal(err)
	}
	lab := &shuffled{}
	if err := Run(t.Context(), newCrew(), j, lab); err != nil || len(lab.deeds) != 9 {
		t.Fatalf("%v after the trials %v", err, lab.deeds)
	}
	cut, most := 0, 0
	for line := range strings.Lines(d.String()) {
		cut += len(line)
		var again disk
		again.Write(d.Bytes()[:cut])
		log := replay(t, again.Bytes())
		most = max(most, len(log.Open()))
		s := newCrew()
		pending, err := Resume(s, log)
		if err != nil || len(pending) != len(log.Open()) {
			t.Fatalf("cut at %d: %v, pending %v", cut, err, pending)
		}
		j, err := Open(&again, log, head)
		if err != nil {
			t.Fatal(err)
		}
		lab := &shuffled{}
		if err := Run(t.Context(), s, j, lab); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		for i := range 9 {
			had := i < len(log.Trials) && log.Trials[i].Observation != nil
			if had == slices.Contains(lab.deeds, i+1) {
				t.Errorf("cut at %d: measured are %v", cut, lab.deeds)
			}
		}
		if end := replay(t, again.Bytes()); !end.Ended || len(end.Open()) > 0 {
			t.Errorf("cut at %d: the journal ends with\n%s", cut, again.String())
		}
	}
	if most != 3 {
		t.Errorf("%d trials are open at most", most)
	}
	tampered := strings.Replace(study+proposed, `"pass":0}`, `"pass":0,"node":"a"}`, 1)
	if _, err := Replay(strings.NewReader(tampered + strings.NewReplacer(`"seq":2`, `"seq":3`, `"trial":1`, `"trial":2`, `"pass":0}`, `"pass":0,"node":"a"}`).Replace(proposed))); err == nil {
		t.Error("two trials are open on one machine")
	}
}

// TestOneOfSeveralFails: an error of one trial gives the others up, and what had ended stays.
func TestOneOfSeveralFails(t *testing.T) {
	d := &disk{}
	j, _ := Open(d, Log{}, head)
	err := Run(t.Context(), newCrew(), j, &shuffled{fails: 4})
	if err == nil || !strings.HasPrefix(err.Error(), "trial 4 (after [") || !strings.HasSuffix(err.Error(), "the disk is full") {
		t.Errorf("error %v", err)
	}
	log := replay(t, d.Bytes())
	if open := log.Open(); len(open) == 0 || len(open) == len(log.Trials) {
		t.Errorf("open are %v", open)
	}
}
