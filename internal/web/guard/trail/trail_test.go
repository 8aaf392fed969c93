package trail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

var roomy = Limits{File: 1 << 20, Files: 10}

func openTrail(t *testing.T, dir string, l Limits) *Trail {
	t.Helper()
	tr, err := Open(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func add(t *testing.T, tr *Trail, actions ...string) {
	t.Helper()
	for _, a := range actions {
		if err := tr.Add(Event{Time: time.Unix(1, 0), Who: "anna", Action: a, Outcome: Done}); err != nil {
			t.Fatal(err)
		}
	}
}

// all reads the log in pages of n.
func all(t *testing.T, tr *Trail, n int) (actions []string, damaged int) {
	t.Helper()
	cursor := ""
	for range 10000 {
		p, err := tr.Page(cursor, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Events {
			actions = append(actions, e.Action)
		}
		damaged += p.Damaged
		if len(p.Events) > n {
			t.Fatalf("%d events in a page of %d", len(p.Events), n)
		}
		if cursor = p.Next; cursor == "" {
			return actions, damaged
		}
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestPages(t *testing.T) {
	dir := t.TempDir()
	tr := openTrail(t, dir, Limits{File: 500, Files: 100})
	var want []string
	for i := range 40 {
		add(t, tr, fmt.Sprint("a", i))
		want = append([]string{fmt.Sprint("a", i)}, want...)
	}
	if n := len(files(t, dir)); n < 5 {
		t.Fatalf("%d files: they were not rotated", n)
	}
	for _, n := range []int{1, 3, 40, 1000} {
		if got, _ := all(t, tr, n); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in pages of %d: %v", n, got)
		}
	}
	// A cursor stays good while events are added.
	first, err := tr.Page("", 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, tr, "later1", "later2", "later3", "later4", "later5", "later6")
	second, err := tr.Page(first.Next, 5, nil)
	if err != nil || second.Events[0].Action != "a29" || second.Events[4].Action != "a25" {
		t.Errorf("%+v, %v", second, err)
	}
	rare, err := tr.Page("", 5, func(e Event) bool { return e.Action == "a7" })
	if err != nil || len(rare.Events) != 1 || rare.Next != "" {
		t.Errorf("%+v, %v", rare, err)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	tr := openTrail(t, dir, Limits{File: 1, Files: 3})
	for i := range 10 {
		add(t, tr, fmt.Sprint("a", i))
	}
	if got, _ := all(t, tr, 2); len(files(t, dir)) != 3 || fmt.Sprint(got) != "[a9 a8 a7]" {
		t.Errorf("%d files with %v", len(files(t, dir)), got)
	}
}

// A log that was cut anywhere keeps every line before, and goes on with whole lines.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	tr := openTrail(t, dir, roomy)
	add(t, tr, "one", "two")
	tr.Close()
	name := files(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	firstLine := strings.IndexByte(string(whole), '\n') + 1
	for cut := range len(whole) {
		if edge := cut < 2 || cut > len(whole)-3 || cut > firstLine-3 && cut < firstLine+3; !edge && cut%7 != 0 {
			continue // each costs a sync
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again := openTrail(t, dir, roomy)
		add(t, again, "three")
		got, damaged := all(t, again, 10)
		want, torn := "[three]", 0
		switch {
		case cut >= len(whole)-1:
			want = "[three two one]"
		case cut >= firstLine-1 && firstLine > 0:
			want = "[three one]"
		}
		if cut != 0 && cut != firstLine && cut != firstLine-1 && cut < len(whole)-1 {
			torn = 1
		}
		if fmt.Sprint(got) != want || damaged != torn {
			t.Fatalf("cut at %d of %d: %v with %d damaged, want %s with %d", cut, len(whole), got, damaged, want, torn)
		}
		again.Close()
	}
}

// Whatever is in its texts, an event is one line, and reads as what it is.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	tr := openTrail(t, dir, roomy)
	hostile := "x\n{\"action\":\"forged\"}\r\n\x1b[2J\u202egnp.exe\u2028\x00\xff" + strings.Repeat("y", 1<<20)
	e := Event{Who: hostile, Role: hostile, Address: hostile, Request: hostile, Action: hostile, Object: hostile, Reason: hostile, Detail: map[string]string{hostile: hostile}}
	for i := range 100 {
		e.Detail[fmt.Sprint("d", i)] = hostile
	}
	if err := tr.Add(e); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(files(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(b), "\n") != 1 || len(b) > 64<<10 || !utf8.Valid(b) || strings.ContainsAny(string(b), "\x1b\x00\u202e\u2028") {
		t.Errorf("%d lines of %d bytes", strings.Count(string(b), "\n"), len(b))
	}
	if got, damaged := all(t, tr, 10); len(got) != 1 || damaged != 0 || got[0] == "forged" {
		t.Errorf("%d events, %d damaged", len(got), damaged)
	}
}

// A secret is masked by its form, and in a detail by its name.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	tr := openTrail(t, dir, roomy)
	if err := tr.Add(Event{Action: "launch", Object: "serve --api-key hunter1hunter1", Reason: "HF_TOKEN=hunter3hunter3", Detail: map[string]string{"password": "hunter2hunter2", "study": "kept"}}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(files(t, dir)[0])
	if err != nil || strings.Contains(string(b), "hunter") || !strings.Contains(string(b), "kept") {
		t.Errorf("%s, %v", b, err)
	}
}

// Two processes that add to one log keep each other's events.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range 2 {
		tr := openTrail(t, dir, Limits{File: 2000, Files: 1000})
		for g := range 2 {
			wg.Go(func() {
				for i := range 25 {
					if err := tr.Add(Event{Action: fmt.Sprint(p, g, i)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	got, damaged := all(t, openTrail(t, dir, roomy), 7)
	seen := map[string]bool{}
	for _, a := range got {
		seen[a] = true
	}
	if len(got) != 100 || len(seen) != 100 || damaged != 0 {
		t.Errorf("%d events, %d of them different, %d damaged", len(got), len(seen), damaged)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	add(t, openTrail(t, dir, roomy), "one")
	info, err := os.Stat(files(t, dir)[0])
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("others may read the log: %v, %v", info.Mode(), err)
	}
}

func FuzzCursor(f *testing.F) {
	dir := f.TempDir()
	tr, err := Open(dir, Limits{File: 100, Files: 10})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 5 {
		if err := tr.Add(Event{Action: fmt.Sprint(i)}); err != nil {
			f.Fatal(err)
		}
	}
	first, err := tr.Page("", 2, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", first.Next, "../../etc/passwd:10", "audit-20260101T000000.000000000.jsonl:-1", "x:9223372036854775807"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, cursor string, n int) {
		p, err := tr.Page(cursor, n, nil)
		if err == nil && len(p.Events) > 5 {
			t.Errorf("%d events of 5", len(p.Events))
		}
	})
}

// What lies before a place comes as the lines that it has, whatever they are.
func FuzzBackwards(f *testing.F) {
	f.Add("one\ntwo\n\nthree")
	f.Add(strings.Repeat("x", chunk-1) + "\n" + strings.Repeat("y", 2*chunk) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		var got []string
		err := backwards(strings.NewReader(text), int64(len(text)), func(line []byte, at int64) bool {
			if !strings.HasPrefix(text[at:], string(line)) {
				t.Errorf("%q does not stand at %d", line, at)
			}
			got = append([]string{string(line)}, got...)
			return true
		})
		if err != nil {
			t.Skip() // a line that is too long
		}
		want := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			want = nil
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
