//go:build unix

package launch

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perflab/internal/durable"
	"perflab/internal/proc"
)

// TestEnds: how a child ended is known, by status and in words.
func TestEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := openFor(t, dir, testOptions(t))
	for name, want := range map[string]string{
		"exit-0":   "done",
		"exit-1":   "failed: its messages say why",
		"exit-2":   "refused as wrongly asked: its messages say what to correct",
		"exit-3":   "done, and an SLO was missed",
		"exit-4":   "done, and the measurement cannot be believed",
		"exit-130": "stopped; what was measured is kept",
		"exit-7":   "ended with status 7, which perflab does not give",
		"killed":   "ended by SIGKILL (kill -9, or the system was out of memory); what was measured before is kept",
	} {
		id := submit(t, q, predicted(name))
		l := ended(t, q, id)
		a := l.Last()
		if a.Exit.Meaning != want || a.Ended == nil || a.Ended.Before(a.Started) || len(l.Attempts) != 1 {
			t.Errorf("%s: %+v %+v, want %q", name, a, a.Exit, want)
		}
		if code := a.Exit.Code; (code == nil) != (name == "killed") || code != nil && name != "exit-"+strconv.Itoa(*code) {
			t.Errorf("%s: code %v", name, code)
		}
		if c, err := q.Tail(id, Stdout, 0); err != nil || c.Text != "result of "+name+"\n" {
			t.Errorf("%s: it printed %q, %v", name, c.Text, err)
		}
		var kept Launch
		if err := readJSON(filepath.Join(dir, id, launchFile), &kept); err != nil || kept.State != Ended || kept.Last().Exit.Meaning != want {
			t.Errorf("%s: on disk %+v, %v", name, kept, err)
		}
	}
}

// TestStop: the first request lets a child keep what it has, the second ends it, and one that
// does not end is killed.
func TestStop(t *testing.T) {
	t.Parallel()
	q := openFor(t, t.TempDir(), testOptions(t))
	id := submit(t, q, predicted("drain"))
	atWork(t, q, id)
	for i, who := range []string{"ada", "bob"} {
		l, err := q.Stop(id, who)
		if err != nil || !l.Stopping() || len(l.Last().Stops) != i+1 || l.Last().Stops[i].Who != who {
			t.Fatalf("stop %d: %+v, %v", i+1, l.Last(), err)
		}
		if i == 0 {
			says(t, q, id, "interrupted")
		}
	}
	if l := ended(t, q, id); l.Last().Exit.Code == nil || *l.Last().Exit.Code != 130 {
		t.Errorf("ended %+v", l.Last().Exit)
	}
	if _, err := q.Stop(id, "ada"); err == nil || !strings.HasSuffix(err.Error(), "does not run: it has ended: stopped; what was measured is kept") {
		t.Errorf("stopped what has ended: %v", err)
	}

	o := testOptions(t)
	o.forceAfter = time.Millisecond
	q = openFor(t, t.TempDir(), o)
	id = submit(t, q, predicted("stubborn"))
	atWork(t, q, id)
	for range 2 {
		if _, err := q.Stop(id, "ada"); err != nil {
			t.Fatal(err)
		}
	}
	if l := ended(t, q, id); !strings.HasPrefix(l.Last().Exit.Signal, "SIGKILL") {
		t.Errorf("ended %+v", l.Last().Exit)
	}
}

// TestServerGone: a study outlives its server; the next one finds it, and stops it, and knows how
// those ended that had no server.
func TestServerGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := open(t, dir, testOptions(t))
	stays, ends := submit(t, q, predicted("wait-stays")), submit(t, q, predicted("wait-ends"))
	before, other := atWork(t, q, stays), atWork(t, q, ends)
	q.Close()
	if p, ok := proc.Read(before.Last().Child.PID); !ok || p.ID != before.Last().Child || p.Group != before.Last().Supervisor.PID {
		t.Errorf("the child is %+v, and was %+v of the session %d", p, before.Last().Child, before.Last().Supervisor.PID)
	}
	if err := os.WriteFile(filepath.Join(other.Dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child has ended", func() bool {
		_, err := os.Stat(filepath.Join(dir, ends, numbered(exitName, 1)))
		return err == nil
	})

	q = openFor(t, dir, testOptions(t))
	if l := ended(t, q, ends); l.Last().Exit.Meaning != "done" {
		t.Errorf("ended %+v", l.Last().Exit)
	}
	l, err := q.Get(stays)
	if err != nil || l.State != Running || l.Last().Child != before.Last().Child {
		t.Fatalf("the new server has %+v, %v", l, err)
	}
	if _, err := q.Stop(stays, "bob"); err != nil {
		t.Fatal(err)
	}
	if l := ended(t, q, stays); *l.Last().Exit.Code != 130 {
		t.Errorf("ended %+v", l.Last().Exit)
	}
}

// TestSupervisorKilled: the study goes on, is seen to run, can be stopped, and how it ended is
// said not to be known.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	for _, behaviour := range []string{"drain", "stubborn", "killed with it"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t)
			o.forceAfter = time.Millisecond // after the second request, which drain does not outlive either
			q := openFor(t, t.TempDir(), o)
			name, _, both := strings.Cut(behaviour, " ")
			if both {
				name = "stubborn"
			}
			id := submit(t, q, predicted(name))
			a := atWork(t, q, id).Last()
			if err := orphan(a.Supervisor).Signal(os.Kill); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the supervisor has ended", func() bool { return !durable.Held(q.dir.path(id, aliveFile)) })
			if both {
				if err := orphan(a.Child).Signal(os.Kill); err != nil {
					t.Fatal(err)
				}
			} else {
				stopOrphan(t, q, id)
			}
			if l := ended(t, q, id); l.Last().Exit.Meaning != unknownEnd || l.Last().Exit.Code != nil || l.Last().Ended != nil {
				t.Errorf("ended %+v", l.Last().Exit)
			}
		})
	}
}

// stopOrphan stops a launch without a supervisor, twice.
func stopOrphan(t *testing.T, q *Queue, id string) {
	t.Helper()
	if l, err := q.Get(id); err != nil || l.State != Running {
		t.Fatalf("without a supervisor it is %+v, %v", l, err)
	}
	for range 2 {
		if _, err := q.Stop(id, "ada"); err != nil {
			t.Fatal(err)
		}
		says(t, q, id, "interrupted")
	}
}

// written makes the directory of a launch as a server left it that was killed.
func written(t *testing.T, dir string, l Launch, files map[string]any, name ...string) string {
	t.Helper()
	m := maker{dir: folder(dir), o: testOptions(t)}
	var err error
	if m.work, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	r := predicted(strings.Join(append(name, "exit-0")[:1], ""))
	l.Schema, l.ID, l.Work, l.Queued = launchSchema, newID(time.Now()), m.work, time.Now().UTC()
	if err := m.describe(&l, r); err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(filepath.Join(dir, l.ID)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, l.ID, studyFile), []byte(r.Study.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	files[launchFile] = l
	for name, v := range files {
		if err := writeJSON(filepath.Join(dir, l.ID, name), v); err != nil {
			t.Fatal(err)
		}
	}
	return l.ID
}

// TestLeftByKill: what a server that was killed has left says what was done, and nothing is done
// twice. A process that has taken over a number is neither waited for nor touched.
func TestLeftByKill(t *testing.T) {
	t.Parallel()
	me, ok := proc.Read(os.Getpid())
	if !ok {
		t.Skip("this system does not tell of its processes")
	}
	reused := me.ID
	reused.Start--
	otherBoot := me.ID
	otherBoot.Boot = "another"
	begun := Launch{State: Running, Attempts: []Attempt{{Number: 1, Started: time.Now().UTC(), Stops: []Act{{Who: "ada"}, {Who: "ada"}}}}}
	fresh := Launch{State: Running, Attempts: []Attempt{{Number: 1, Started: time.Now().UTC()}}}
	dir := t.TempDir()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	ids := map[string]string{
		"waits":        written(t, dir, Launch{State: Queued}, map[string]any{}),
		"never began":  written(t, dir, fresh, map[string]any{numbered(jobName, 1): job{}}),
		"reused":       written(t, dir, begun, map[string]any{numbered(processName, 1): process{Supervisor: reused, Child: reused}}),
		"restarted":    written(t, dir, begun, map[string]any{numbered(processName, 1): process{Supervisor: otherBoot, Child: otherBoot}}),
		"ended before": written(t, dir, begun, map[string]any{numbered(processName, 1): process{Supervisor: reused, Child: reused}, numbered(exitName, 1): exit{At: time.Now(), Code: new(3)}}),
	}
	q := openFor(t, dir, testOptions(t))
	for what, want := range map[string]string{"waits": "done", "never began": "done", "reused": unknownEnd, "restarted": unknownEnd, "ended before": "done, and an SLO was missed"} {
		l := ended(t, q, ids[what])
		if l.Last().Exit.Meaning != want || len(l.Attempts) != 1 {
			t.Errorf("%s: %+v, %d attempts", what, l.Last().Exit, len(l.Attempts))
		}
	}
	select {
	case s := <-signals:
		t.Errorf("a process that took over the number of a child got %v", s)
	default:
	}
}

// TestTwoServers: one runs the queue, the other shows it and says so, and takes over.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir, testOptions(t))
	second := openFor(t, dir, testOptions(t))
	if err := first.ReadOnly(); err != nil {
		t.Errorf("the first: %v", err)
	}
	var why *ReadOnlyError
	if err := second.ReadOnly(); !errors.As(err, &why) || !strings.HasPrefix(err.Error(), "another perflab serve runs the launches in "+dir) {
		t.Errorf("the second: %v", err)
	}
	id := submit(t, first, predicted("wait"))
	atWork(t, first, id)
	until(t, second, id, "seen to run", func(l Launch) bool { return l.State == Running && l.Last().Child.PID != 0 })
	for what, do := range map[string]func() error{
		"submit": func() error { _, err := second.Submit(predicted("exit-0")); return err },
		"stop":   func() error { _, err := second.Stop(id, "bob"); return err },
		"cancel": func() error { _, err := second.Cancel(id, "bob"); return err },
		"resume": func() error { _, err := second.Resume(id, "bob"); return err },
	} {
		if err := do(); !errors.As(err, &why) {
			t.Errorf("%s of the second: %v", what, err)
		}
	}
	first.Close()
	eventually(t, "the second has taken over", func() bool { return second.ReadOnly() == nil })
	if _, err := second.Stop(id, "bob"); err != nil {
		t.Fatal(err)
	}
	if l := ended(t, second, id); *l.Last().Exit.Code != 130 {
		t.Errorf("ended %+v", l.Last().Exit)
	}
}

// TestOneAtATime: no two launches have the same devices, and one after the other gets them.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	q := openFor(t, t.TempDir(), testOptions(t))
	on := func(name, devices string) Request {
		text := strings.Replace(studyText(name, "{kind: process}"), "gpus: 2", "gpus: 2, devices: "+devices, 1)
		return Request{Study: &StudyRequest{Text: text}}
	}
	a := submit(t, q, on("wait-a", "[0, 1]"))
	b := submit(t, q, on("wait-b", "[1, 2]"))
	c := submit(t, q, on("wait-c", "[2, 3]")) // which would keep b from what it waits for
	d := submit(t, q, on("wait-d", "[4, 5]"))
	atWork(t, q, a)
	atWork(t, q, d)
	l, _ := q.Get(b)
	if l.State != Queued || l.Position != 1 || l.Waits != "for wait-a, which has or gets accelerators 0, 1 of this machine" {
		t.Errorf("b: %+v", l)
	}
	if l, _ = q.Get(c); l.State != Queued || l.Position != 2 || l.Waits != "for wait-b, which has or gets accelerators 1, 2 of this machine" {
		t.Errorf("c: %+v", l)
	}
	if _, err := q.Move(c, 1); err != nil {
		t.Fatal(err)
	}
	atWork(t, q, c) // it is before b now, and its devices are free
	if _, err := q.Stop(a, "ada"); err != nil {
		t.Fatal(err)
	}
	ended(t, q, a)
	if l, _ = q.Get(b); l.State != Queued || !strings.HasPrefix(l.Waits, "for wait-c") {
		t.Errorf("b: %+v", l)
	}
	if l, err := q.Cancel(b, "eve"); err != nil || l.State != Cancelled || l.Cancel.Who != "eve" {
		t.Errorf("cancelled: %+v, %v", l, err)
	}
	for _, id := range []string{c, d} {
		if _, err := q.Stop(id, "ada"); err != nil {
			t.Fatal(err)
		}
		ended(t, q, id)
	}
	if order := ids(q.List()); len(order) != 4 || order[3] != a {
		t.Errorf("listed as %v", order)
	}
}

func ids(all []Launch) (out []string) {
	for _, l := range all {
		out = append(out, l.ID)
	}
	return out
}

// TestStates: what makes no sense is refused with the state that it is in.
func TestStates(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.AtOnce = 1
	q := openFor(t, t.TempDir(), o)
	runs := submit(t, q, predicted("wait"))
	atWork(t, q, runs)
	waits := submit(t, q, predicted("exit-0"))
	if l, _ := q.Get(waits); l.Waits != "for one of the 1 that run, the most at once" {
		t.Errorf("it waits %q", l.Waits)
	}
	second := func(_ Launch, err error) error { return err }
	for want, err := range map[string]error{
		"launch " + runs + " does not wait: it runs":               second(q.Cancel(runs, "")),
		"launch " + runs + " cannot go on: it runs":                second(q.Resume(runs, "")),
		"launch " + runs + " is not to be repeated yet: it runs":   second(q.Retry(runs, "")),
		"launch " + waits + " does not run: it waits":              second(q.Stop(waits, "")),
		"launch " + waits + " is not to be repeated yet: it waits": second(q.Retry(waits, "")),
		`there is no launch "../x"`:                                second(q.Stop("../x", "")),
		`there is no launch "20260101-000000-00000000"`:            second(q.Get("20260101-000000-00000000")),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := q.Cancel(waits, "ada"); err != nil {
		t.Fatal(err)
	}
	l, err := q.Retry(waits, "bob")
	if err != nil || l.RetryOf != waits || l.Who != "bob" || l.State != Queued || l.Position != 1 {
		t.Errorf("retried: %+v, %v", l, err)
	}
	if _, err := q.Stop(runs, "ada"); err != nil {
		t.Fatal(err)
	}
	if l := ended(t, q, l.ID); l.Last().Exit.Meaning != "done" {
		t.Errorf("the repeated one: %+v", l.Last().Exit)
	}
}

// TestRefused: what is wrong or not allowed leaves nothing behind.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := openFor(t, dir, testOptions(t))
	for want, r := range map[string]Request{
		"a launch is of a study or of a bench": {},
		"runtime.hooks.start: ":                {Study: &StudyRequest{Text: studyText("a", "{kind: existing, urls: ['http://127.0.0.1:1'], hooks: {start: rm}}")}},
		"study.yaml:10:1: unknown key":         {Study: &StudyRequest{Text: studyText("a", "{kind: predicted}", "colour: red")}},
		"strategy: \"best\" is not known":      {Study: &StudyRequest{Text: studyText("a", "{kind: predicted}"), Strategy: "best"}},
		"dataset_path: ":                       {Bench: &BenchRequest{Flags: map[string][]string{"dataset-path": {"/etc/passwd"}}}},
		"a flag holds a secret":                {Bench: &BenchRequest{Flags: map[string][]string{"metadata": {"api_key=sk-0123456789abcdef0123456789abcdef"}}}},
		"the study holds a secret":             {Study: &StudyRequest{Text: studyText("a", "{kind: predicted}", "title: sk-proj-0123456789abcdef0123456789abcdef0123")}},
		"the study's text has 1048577 bytes":   {Study: &StudyRequest{Text: strings.Repeat("#", mostText+1)}},
	} {
		if _, err := q.Submit(r); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := q.Check(r); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("checked: %v, want %s", err, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != lockFile || len(q.List()) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestNoLongerAllowed: a list is asked again when a launch is started.
func TestNoLongerAllowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := written(t, dir, Launch{State: Queued}, map[string]any{})
	o := testOptions(t)
	o.Allow.Runtimes = []string{"process"}
	q := openFor(t, dir, o)
	if l := ended(t, q, id); len(l.Attempts) > 0 || !strings.HasPrefix(l.Fault, `it cannot be started: runtime.kind: "predicted" is not allowed`) {
		t.Errorf("%+v", l)
	}
}

// TestDirectoryFails: a directory that cannot be written to is said, and nothing is lost in memory
// or half on the disk.
func TestDirectoryFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if q, err := Open(filepath.Join(file, "sub"), testOptions(t)); err == nil {
		q.Close()
		t.Error("opened below a file")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, lockFile), 0o755); err != nil { // as of a read-only file system
		t.Fatal(err)
	}
	q := openFor(t, dir, testOptions(t))
	if _, err := q.Submit(predicted("exit-0")); err == nil || !strings.HasPrefix(err.Error(), "the launches are only shown, as none can be written: ") {
		t.Errorf("submitted to what cannot be written: %v", err)
	}
}

// TestUnreadable: a launch whose file was spoiled is shown with what is wrong, and never started.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{":  "its launch.json cannot be read: launch.json: unexpected end of JSON input",
		"{}": `its launch.json cannot be read: it is of schema "", and this version knows perflab.launch/1`,
		`{"schema": "perflab.launch/1", "id": "20260101-000000-00000000", "state": "running"}`: "its launch.json cannot be read: it runs and was never started",
		`{"schema": "perflab.launch/1", "id": "20260101-000000-00000000", "state": "odd"}`:     `its launch.json cannot be read: its state is "odd"`,
		`{"schema": "perflab.launch/1", "id": "../../x"}`:                                      `its launch.json cannot be read: it is of launch "../../x"`,
	} {
		dir := t.TempDir()
		const id = "20260101-000000-00000000"
		if err := os.Mkdir(filepath.Join(dir, id), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id, launchFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		q := openFor(t, dir, testOptions(t))
		if l, err := q.Get(id); err != nil || l.State != Ended || l.Fault != want {
			t.Errorf("%s: %+v, %v", text, l, err)
		}
		for _, do := range []func(string, string) (Launch, error){q.Resume, q.Retry, q.Stop, q.Cancel} {
			if _, err := do(id, "ada"); err == nil {
				t.Errorf("%s: something can be done with it", text)
			}
		}
	}
}

// TestWait: who waits is told of a change, of its own end, and of that of the server.
func TestWait(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir(), testOptions(t))
	version := q.Version()
	if now, err := q.Wait(t.Context(), version-1); err != nil || now != version {
		t.Errorf("of what has changed: %d, %v", now, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Wait(ctx, version); !errors.Is(err, context.Canceled) {
		t.Errorf("of who left: %v", err)
	}
	told := make(chan error, 1)
	go func() {
		for version := version; ; {
			now, err := q.Wait(t.Context(), version)
			if err != nil {
				told <- err
				return
			}
			version = now
		}
	}()
	ended(t, q, submit(t, q, predicted("exit-0")))
	q.Close()
	if err := <-told; !errors.Is(err, os.ErrClosed) {
		t.Errorf("of a server that ended: %v", err)
	}
	if _, err := q.Submit(predicted("exit-0")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("submitted to a server that ended: %v", err)
	}
}

// TestGate: a gate that nobody opens lets nothing through.
func TestGate(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "ran")
	for opened, want := range map[bool]int{true: 0, false: 1} {
		closed, open, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.StartProcess(self, []string{gateName, "/bin/sh", "-c", ": > " + mark}, &os.ProcAttr{Files: []*os.File{nil, nil, nil, closed}})
		closed.Close()
		if err != nil {
			t.Fatal(err)
		}
		if opened {
			_, err = open.Write([]byte{1})
		}
		open.Close()
		s, werr := p.Wait()
		if err != nil || werr != nil || s.ExitCode() != want {
			t.Errorf("opened %v: %v, %v, %v", opened, s, err, werr)
		}
		if _, err := os.Stat(mark); (err == nil) != opened {
			t.Errorf("opened %v: %v", opened, err)
		}
		_ = os.Remove(mark)
	}
}

// TestSorted: ids sort by time, and no two are alike.
func TestSorted(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	made := []string{newID(at), newID(at.Add(time.Second)), newID(at.Add(time.Hour))}
	if !slices.IsSorted(made) || made[0] == newID(at) {
		t.Errorf("%v", made)
	}
	for _, id := range made {
		if !idPattern.MatchString(id) {
			t.Errorf("%q is no id", id)
		}
	}
}
