package bench

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// options say how the workload is sent.
func (b Runner) options(w *workload.Workload) load.Options {
	o := load.Options{
		MaxConcurrency: w.Spec().MaxConcurrency, Spin: load.DefaultSpin, Progress: b.Progress,
		Until: w.Until(), Closed: w.Closed(), Affinity: !w.Spec().NoSessionAffinity,
	}
	if w.Conversations() {
		o.Next = w.Next
	}
	if w.Conversations() && w.Spec().RandomImages > 0 {
		o.Prepare = w.Prepare
	}
	return o
}

// ChatOnly refuses a workload that a backend without messages cannot send.
func ChatOnly(w interface{ NeedsChat() (path, value string) }, backend string) error {
	path, value := w.NeedsChat()
	if path == "" && value == "" || !slices.Contains([]string{openai.BackendCompletions, openai.BackendVLLM}, backend) {
		return nil
	}
	return field.Errorf(path, "%sneeds a chat API: [backend] %s sends one text, [backend] %s messages", strings.TrimLeft(value+" ", " "), backend, openai.BackendChat)
}

// conversations says what the counts of a run of conversations are of; "" for
// other workloads.
func conversations(w *workload.Workload, c *result.Client) string {
	if !w.Conversations() {
		return ""
	}
	text := "rates and the limit of concurrency are of conversations, which hold their place while they think; requests are turns"
	if c != nil && c.Unsent > 0 {
		text += fmt.Sprintf("; %d turns were never sent because the one before failed", c.Unsent)
	}
	return text
}

// roundRobin lets a warm-up reach every adapter.
func roundRobin(s workload.Spec) string {
	if len(s.LoraModules) == 0 {
		return ""
	}
	return "round-robin"
}
