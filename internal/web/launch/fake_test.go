//go:build unix

package launch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"perflab/internal/durable"
	"perflab/internal/web/allow"
)

// TestMain makes the test binary a supervisor and a gate, as main does, and a perflab of which
// the study's name says how it behaves.
func TestMain(m *testing.M) {
	Main()
	if dir := os.Getenv("LAUNCH_TEST_SERVER"); dir != "" {
		os.Exit(serve(dir))
	}
	if os.Getenv("LAUNCH_TEST_CHILD") != "" {
		os.Exit(child(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// child is a perflab tune that measures nothing.
func child(args []string) int {
	text, err := os.ReadFile(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, name, _ := strings.Cut(string(text), "name: ")
	name, _, _ = strings.Cut(name, "\n")
	behaviour, detail, _ := strings.Cut(name, "-")
	dir := args[3]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 2) // as many as are sent
	signal.Notify(signals, os.Interrupt)
	fmt.Println("result of", name)
	fmt.Fprintln(os.Stderr, strings.Join(args, " "))
	switch behaviour {
	case "exit":
		var code int
		fmt.Sscan(detail, &code)
		return code
	case "count":
		if err := durable.AppendFile(filepath.Join(dir, "ran"), []byte("once\n"), 0o644); err != nil {
			return 1
		}
		return 0
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "wait":
		await(filepath.Join(dir, "end"), signals)
		return 0
	case "drain": // as perflab: the second interrupt ends it at once
		for range 2 {
			<-signals
			fmt.Fprintln(os.Stderr, "interrupted")
		}
		return 130
	case "stubborn":
		for {
			<-signals
			fmt.Fprintln(os.Stderr, "interrupted")
		}
	}
	return 99
}

// await ends a child when a file appears, or by an interrupt.
func await(file string, signals <-chan os.Signal) {
	look := time.NewTicker(10 * time.Millisecond)
	for {
		select {
		case <-signals:
			fmt.Fprintln(os.Stderr, "interrupted")
			os.Exit(130)
		case <-look.C:
			if _, err := os.Stat(file); err == nil {
				return
			}
		}
	}
}

func predicted(name string) Request {
	return Request{Who: "ada", Study: &StudyRequest{Text: studyText(name, "{kind: predicted}")}}
}

// testOptions has the test binary as perflab, and looks often.
func testOptions(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Program: self, Env: append(os.Environ(), "LAUNCH_TEST_CHILD=1"), AtOnce: 4, Allow: allow.List{}, every: 10 * time.Millisecond}
}

func open(t *testing.T, dir string, o Options) *Queue {
	t.Helper()
	q, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// openFor is open for a test, at whose end all that still runs is killed.
func openFor(t *testing.T, dir string, o Options) *Queue {
	t.Helper()
	q := open(t, dir, o)
	t.Cleanup(func() { q.Close(); killAll(t, dir) })
	return q
}

// killAll ends what a test that failed has left.
func killAll(t *testing.T, dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "process-*.json"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range paths {
		var p process
		if err := readJSON(path, &p); err == nil {
			_ = orphan(p.Child).Signal(os.Kill) // most have ended
		}
	}
}

func submit(t *testing.T, q *Queue, r Request) string {
	t.Helper()
	l, err := q.Submit(r)
	if err != nil {
		t.Fatal(err)
	}
	return l.ID
}

// patience bounds what a test waits for. It is long, as the machine may be busy with others.
const patience = 60 * time.Second

// until waits until a launch is as wanted.
func until(t *testing.T, q *Queue, id, what string, is func(Launch) bool) Launch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for version := uint64(0); ; {
		now, err := q.Wait(ctx, version)
		l, gerr := q.Get(id)
		if gerr == nil && is(l) {
			return l
		}
		if err != nil {
			log, _ := q.Tail(id, Stderr, 0)
			t.Fatalf("%s is not %s: %v\n%+v\n%v\n%s", id, what, err, l, l.Last(), log.Text)
		}
		version = now
	}
}

func ended(t *testing.T, q *Queue, id string) Launch {
	t.Helper()
	return until(t, q, id, "ended", func(l Launch) bool { return l.State == Ended })
}

// atWork waits until the child of a launch has said its first words.
func atWork(t *testing.T, q *Queue, id string) Launch {
	t.Helper()
	says(t, q, id, "--out")
	return until(t, q, id, "started", func(l Launch) bool { return l.State == Running && l.Last().Child.PID != 0 })
}

// says waits until a launch has written something on its standard error.
func says(t *testing.T, q *Queue, id, words string) {
	t.Helper()
	eventually(t, "says "+words, func() bool {
		c, err := q.Tail(id, Stderr, 0)
		return err == nil && strings.Contains(c.Text, words)
	})
}

// eventually waits for what no queue tells of.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); !is(); <-look.C {
		if time.Since(began) > patience {
			t.Fatalf("it never was so: %s", what)
		}
	}
}
