package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

// commands are what scripts can say besides testscript's own words.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"change":    change,
	"cutstudy":  cutstudy,
	"exits":     exits,
	"fleetof":   fleetof,
	"found":     found,
	"freeport":  freeport,
	"interrupt": interrupt,
	"noengines": noengines,
	"lines":     lines,
	"natsd":     natsd,
	"unpack":    unpack,
	"until":     untilPrinted,
	"waitfor":   waitfor,
}

// dockerName is the program of scripts that stands in for the Docker Engine.
const dockerName = "dockerd"

// dockerMain is dockerd DIR IMAGE: a stand-in of the Docker Engine with an image, on DIR/docker.sock. An interrupt ends it: with status
// 1 where containers are left.
func dockerMain(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dockerd DIR IMAGE")
		return 2
	}
	e, err := dockertest.Open(args[0], dockertest.Image{Ref: args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer e.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	<-ctx.Done()
	for _, c := range e.Containers() {
		fmt.Println("left is", c.Name, c.Config["Cmd"])
	}
	return min(1, len(e.Containers()))
}

// waitfor PATH waits until a file is there.
func waitfor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor PATH")
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s does not appear", args[0])
}

// lines N FILE waits until a file has so many lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[1])); err == nil && bytes.Count(b, []byte("\n")) >= n {
			return
		}
	}
	ts.Fatalf("%s never has %d lines", args[1], n)
}

// untilPrinted is until PATTERN COMMAND...: it runs a command again and again until its standard output matches.
func untilPrinted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern := regexp.MustCompile("(?s)" + args[0])
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		if ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%s never prints %s", strings.Join(args[1:], " "), args[0])
}

// found VAR PATTERN sets a variable to what the pattern's group has in the last standard output.
func found(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: found VAR PATTERN")
	}
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("the output has no %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// fleetof N HUB waits until a fleet has so many agents.
func fleetof(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fleetof N HUB")
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		ts.Check(ts.Exec("perflab", "fleet", "--hub", args[1], "--json"))
		var now struct{ Agents []any }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &now))
		if strconv.Itoa(len(now.Agents)) == args[0] {
			return
		}
	}
	ts.Fatalf("the fleet never has %s agents", args[0])
}

// change FILE OLD NEW replaces the first OLD in a file, which must have one.
func change(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: change FILE OLD NEW")
	}
	path := ts.MkAbs(args[0])
	was, err := os.ReadFile(path)
	ts.Check(err)
	if !bytes.Contains(was, []byte(args[1])) {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, bytes.Replace(was, []byte(args[1]), []byte(args[2]), 1), 0o644))
}

// exits CODES COMMAND... runs a command that must end with one of these exit
// statuses (comma separated). A script that measures allows 4 beside what it
// wants: on a machine busy with other tests the client may be late, and says
// so.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODES COMMAND...")
	}
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		got = e.ExitCode()
	}
	if !slices.Contains(strings.Split(args[0], ","), strconv.Itoa(got)) {
		ts.Fatalf("%s: exit status %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// freeport NAME sets a variable to a port that nobody listens on.
func freeport(ts *testscript.TestScript, _ bool, args []string) {
	port, err := deploytest.FindPorts(1)
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(port))
}

// interrupt AFTER COMMAND... interrupts a command that long after its start;
// it must then end with the exit status of an interrupted one.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	after, err := time.ParseDuration(args[0])
	ts.Check(err)
	cmd := exec.Command(args[1], args[2:]...)
	if cmd.Path, err = exec.LookPath(filepath.Join(lookDir(ts), args[1])); err != nil {
		ts.Fatalf("%v", err)
	}
	var out, errOut bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &out, &errOut
	ts.Check(cmd.Start())
	stop := time.AfterFunc(after, func() { cmd.Process.Signal(os.Interrupt) })
	defer stop.Stop()
	err = cmd.Wait()
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), errOut.String())
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 130 {
		ts.Fatalf("interrupted command ended with %v, want exit status 130\n%s%s", err, out.String(), errOut.String())
	}
}

// lookDir is the directory of the perflab under test.
func lookDir(ts *testscript.TestScript) string {
	dir, _, _ := strings.Cut(ts.Getenv("PATH"), string(os.PathListSeparator))
	return dir
}

// noengines DIR fails when a process is left whose command line names DIR's
// script directory: an engine that a study left behind.
func noengines(ts *testscript.TestScript, _ bool, _ []string) {
	lines, err := filepath.Glob("/proc/[0-9]*/environ")
	ts.Check(err)
	marker := []byte("WORK=" + ts.Getenv("WORK") + "\x00")
	for _, path := range lines {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, marker) || !bytes.Contains(env, []byte("PERFLAB_DEPLOYMENT=")) {
			continue
		}
		ts.Fatalf("process %s is left", filepath.Base(filepath.Dir(path)))
	}
}

// unpack FILE unpacks a compressed tar file into the working directory.
func unpack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unpack FILE")
	}
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	packed, err := gzip.NewReader(f)
	ts.Check(err)
	dir, err := os.OpenRoot(ts.MkAbs("."))
	ts.Check(err)
	defer dir.Close()
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		ts.Check(err)
		if h.Typeflag == tar.TypeDir {
			ts.Check(dir.MkdirAll(filepath.Clean(h.Name), 0o755))
			continue
		}
		data, err := io.ReadAll(r)
		ts.Check(err)
		ts.Check(dir.WriteFile(filepath.Clean(h.Name), data, 0o644))
	}
}

// cutstudy DIR LINES leaves a study as a process that was killed would: with so
// many lines in its journal, the last of them half written, and nothing of the
// trials that these lines do not end.
func cutstudy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cutstudy DIR LINES")
	}
	dir := ts.MkAbs(args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	journal := filepath.Join(dir, "journal.jsonl")
	data, err := os.ReadFile(journal)
	ts.Check(err)
	lines := strings.SplitAfter(string(data), "\n")
	half := lines[n][:len(lines[n])/2]
	ts.Check(os.WriteFile(journal, []byte(strings.Join(lines[:n], "")+half), 0o644))
	ts.Check(os.Remove(filepath.Join(dir, "study.json")))
	ended := strings.Count(strings.Join(lines[:n], ""), `"kind":"observed"`)
	trials, err := filepath.Glob(filepath.Join(dir, "trials", "*"))
	ts.Check(err)
	for _, trial := range trials[ended:] {
		ts.Check(os.RemoveAll(trial))
	}
}
