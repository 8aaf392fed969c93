package lab

import (
	"fmt"
	"time"

	"perflab/internal/deploy"
)

// patience is how long a study waits for an engine to be ready. It goes by what the study
// says; else by how long earlier launches took, for a catalogue cannot know how fast a disk
// or a registry is.
type patience struct {
	took    map[string]time.Duration // longest start that became ready, by engine
	allowed map[string]time.Duration // by engine, where a start was late once
}

func newPatience() *patience {
	return &patience{took: map[string]time.Duration{}, allowed: map[string]time.Duration{}}
}

// slower is how much longer than the longest start before it another may take: other
// settings compile and capture more.
const slower = 3

// learn takes note of a start that became ready.
func (p *patience) learn(engineName string, took time.Duration) {
	p.took[engineName] = max(p.took[engineName], took)
}

// whole is how long a start may take.
func (p *patience) whole(engineName string) time.Duration {
	return max(deploy.StartTimeout, slower*p.took[engineName], p.allowed[engineName])
}

// extend allows starts more time after one that was late although it went on to the end,
// once in a study. A start that was silent is not tried again: it would be silent again.
func (p *patience) extend(engineName string, late *deploy.LateError) bool {
	if late.Silence || p.allowed[engineName] > 0 {
		return false
	}
	p.allowed[engineName] = 2 * late.Limit
	return true
}

// expect says how long starts took so far, "" where there was none.
func (p *patience) expect(engineName string) string {
	took := p.took[engineName]
	if took == 0 {
		return ""
	}
	return fmt.Sprintf("the longest start so far took %v", took.Round(time.Second))
}
