package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// run runs perflab with shell-like words and returns all that it prints, as on
// a terminal.
func run(t *testing.T, dir, command string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `"$PERFLAB" `+command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1", "PERFLAB="+self)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return date.ReplaceAllString(progressLine.ReplaceAllString(both.String(), ""), "2026-11-23 01:20 UTC")
}

// date is when something ran, which documents show of one day.
var date = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC( to \d{4}-\d\d-\d\d \d\d:\d\d UTC)?`)

// progressLine is what a command without a terminal says each quarter of a minute:
// how often depends on the machine.
var progressLine = regexp.MustCompile(`(?m)^(\d+ min \d\d|\d+\.\d) s  .*\n`)

func TestProgressLine(t *testing.T) {
	const progress = "15.0 s  trial 3 of 7\n1 min 00 s  trial 5 of 7\n12 min 05 s  trial 6 of 7\n"
	if got := progressLine.ReplaceAllString(progress+"3.1 s of it\n", ""); got != "3.1 s of it\n" {
		t.Errorf("of the progress is left %q", got)
	}
}
