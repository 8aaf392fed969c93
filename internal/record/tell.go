package record

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// backends are the names by which bench speaks the APIs, but for the one that it speaks unasked.
var backends = map[string]string{"completions": "openai", "responses": "openai-responses", "messages": "anthropic", "generate": "sglang"}

// Replay is the command line that sends what a recording holds at a server, behind the program's name.
// atOnce is how many sessions are under way together, where it holds sessions; else 0.
func (s Summary) Replay(target, path string, atOnce int) []string {
	words := []string{"bench", "--base-url", target, "--model", cmp.Or(most(s.Models), "MODEL")}
	if b := backends[most(s.APIs)]; b != "" {
		words = append(words, "--backend", b)
	}
	if t := most(s.Temperatures); t != "" && len(s.Temperatures) == 1 {
		words = append(words, "--temperature", t)
	}
	words = append(words, "--dataset-name")
	if atOnce > 0 {
		return append(words, "agents", "--dataset-path", path, "--max-concurrency", strconv.Itoa(atOnce))
	}
	return append(words, "mooncake", "--dataset-path", path)
}

// Lines tell what a recording holds.
func (s Summary) Lines() []string {
	var lines []string
	if s.Simulated {
		lines = append(lines, "SIMULATED: the engine that answered is a simulated one")
	}
	lines = append(lines, fmt.Sprintf("Requests:       %d in %v, %d of them failed", s.Requests, s.Span.Round(100*time.Millisecond), s.Failed))
	if s.Others > 0 {
		lines = append(lines, fmt.Sprintf("Passed on only: %d requests of other paths", s.Others))
	}
	if s.Several > 0 {
		lines = append(lines, fmt.Sprintf("Left out:       %d requests of several prompts each", s.Several))
	}
	if s.Requests == 0 {
		return lines
	}
	lines = append(lines, fmt.Sprintf("Prompt tokens:  %d, %.1f %% of them in blocks that an earlier prompt had", s.Input, percent(s.Shared, s.Input)),
		fmt.Sprintf("Answer tokens:  %d", s.Output))
	if s.Sessions > 0 {
		lines = append(lines, fmt.Sprintf("Sessions:       %d", s.Sessions))
	}
	lines = append(lines, "Blocks:         "+s.cutting())
	return append(lines, s.doubts()...)
}

func percent(part, all int) float64 { return 100 * float64(part) / float64(max(1, all)) }

// cutting says what the blocks are.
func (s Summary) cutting() string {
	text := fmt.Sprintf("of %d tokens, cut by the tokenizer", s.Block)
	if s.BlocksBy[byTokenizer] == 0 {
		text = fmt.Sprintf("of %d tokens, cut by an estimate", s.Block)
	}
	if s.Counted > 0 && s.Text > 0 {
		text += fmt.Sprintf(", which counts %.1f %% of the engine's prompt tokens", percent(s.Text, s.Counted))
	}
	return text
}

// doubts are what of the lengths does not come from the engine.
func (s Summary) doubts() (lines []string) {
	say := func(n int, format string) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("Note:           "+format, n))
		}
	}
	say(s.InputBy[byEstimate], "the prompt lengths of %d requests are estimates: their answers did not tell usage")
	say(s.InputBy[byTokenizer], "the prompt lengths of %d requests are the tokenizer's, without the chat template: their answers did not tell usage")
	say(s.InputBy[byNothing], "the prompts of %d requests could not be read and have no length: a replay leaves them out")
	say(s.OutputBy[byEvents], "the answers of %d requests are as many tokens as they had events with text: clients that ask for stream_options.include_usage are counted exactly")
	say(s.OutputBy[byNothing], "the answers of %d requests have no length, since they told no usage: a replay leaves them out")
	say(s.BlocksBy[byNothing]-s.InputBy[byNothing], "the prompts of %d requests were not taken apart (memory was short, or the body could not be read): they share nothing in a replay")
	return lines
}

// Line is what a recording has so far, in a line.
func (l *Live) Line(since time.Duration) string {
	words := []string{
		fmt.Sprintf("%d requests recorded", l.Recorded.Load()),
		fmt.Sprintf("%d under way", l.Open.Load()),
		fmt.Sprintf("%d failed", l.Failed.Load()),
		fmt.Sprintf("%d prompt and %d answer tokens", l.Input.Load(), l.Output.Load()),
		since.Round(time.Second).String(),
	}
	return strings.Join(words, "  ")
}
