package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFleetDocument: every command of docs/fleet.md is one that a script fleet*.txtar runs, word by
// word but for names of machines, ports and tokens.
func TestFleetDocument(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	load := regexp.MustCompile(`(--fetch|--drop) (\d+|\$LOAD)`)
	placed := regexp.MustCompile(`'?(perflab|tls)://\S+|\$JOIN\d|lab\.example\.org|http://\S+:\S+|\S*:(7422|\$HUB)\b`)
	words := func(line string) []string {
		return strings.Fields(placed.ReplaceAllString(load.ReplaceAllString(line, "$1 LOAD"), "PLACE"))
	}
	var run, others [][]string // in scripts about fleets, and in all
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		for line := range strings.Lines(read(script)) {
			if _, command, ok := strings.Cut(line, "perflab "); ok {
				others = append(others, words(strings.ReplaceAll(command, "127.0.0.1 ", "PLACE ")))
				if strings.HasPrefix(filepath.Base(script), "fleet") {
					run = append(run, others[len(others)-1])
				}
			}
		}
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read("../../docs/fleet.md"), -1) {
		for line := range strings.Lines(block[1]) {
			want := words(strings.TrimPrefix(strings.TrimSpace(line), "perflab "))
			commands++
			if !slices.ContainsFunc(run, func(got []string) bool {
				return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
			}) {
				t.Errorf("no script runs %q", strings.TrimSpace(line))
			}
		}
	}
	for _, inline := range regexp.MustCompile("(?s)`((?:perflab|--)[^`]*)`").FindAllStringSubmatch(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read("../../docs/fleet.md"), ""), -1) {
		text := strings.TrimPrefix(strings.ReplaceAll(inline[1], "\n", " "), "perflab ")
		in := run
		if strings.HasPrefix(text, "--") {
			text, in = strings.Fields(text)[0], others // what it is given is told elsewhere
		}
		commands++
		want := words(regexp.MustCompile(` (N|DIR)\b`).ReplaceAllString(text, ""))
		if !slices.ContainsFunc(in, func(got []string) bool {
			return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
		}) {
			t.Errorf("no script runs %q, which stands in a sentence", inline[1])
		}
	}
	if commands < 6 {
		t.Errorf("docs/fleet.md has %d commands", commands)
	}
}
