package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/push"
	"perflab/internal/store"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
)

// victim is the variable that makes the test program a server that is killed: it names the root.
const victim = "PERFLAB_TEST_WEB_VICTIM"

// serveUntilKilled serves a root and says at which address.
func serveUntilKilled(root string) {
	ctx := context.Background()
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, victim+"=") })
	s, err := web.Open(ctx, web.Options{Roots: []string{root}, Env: env, Reserve: 1, Guard: guard.Options{Listen: "127.0.0.1:0", Limits: fast}})
	if err == nil {
		err = s.Run(ctx, func(address string) { fmt.Println(address) })
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// kept is what servers said that they keep.
type kept struct {
	mu       sync.Mutex
	tags     map[string][]string // by entry
	launches []string
	pushed   []string
}

func (k *kept) add(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
}

// TestKill kills a server again and again, as kill -9 does, while it follows directories, marks,
// launches and takes what is pushed. The next one has everything that was said to be kept, an index
// that is whole, no lock, and shows no half of anything.
func TestKill(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), t.TempDir()
	storetest.Many(t, root, 12, 1)
	for i := range 40 {
		storetest.Run{N: 500 + i}.Write(t, source, fmt.Sprintf("push-%02d", i))
	}
	random := rand.New(rand.NewPCG(7, 7))
	k := &kept{tags: map[string][]string{}}
	round := 0
	for ; round < 6 || round < 60 && (len(k.tags) == 0 || len(k.pushed) == 0 || len(k.launches) == 0); round++ { // more where the machine is busy
		life := time.Duration(20+random.IntN(700)) * time.Millisecond
		untilKilled(t, root, source, round, life, k)
	}
	t.Logf("%d servers were killed: %d entries with marks, %d pushes and %d launches were said to be kept", round, len(k.tags), len(k.pushed), len(k.launches))
	if len(k.tags) == 0 || len(k.pushed) == 0 || len(k.launches) == 0 {
		t.Error("of something nothing was done before servers were killed")
	}
	lab := webtest.Open(t, web.Options{Roots: []string{root}, State: filepath.Join(root, ".perflab", "server")})
	k.check(t, lab)
	whole(t, lab, root)
}

// untilKilled starts a server, has it work, and kills it after a time.
func untilKilled(t *testing.T, root, source string, round int, life time.Duration, k *kept) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), victim+"="+root)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("a server that was started after one was killed does not serve")
	}
	base := lines.Text()
	ctx, cancel := context.WithTimeout(t.Context(), life)
	defer cancel()
	var work sync.WaitGroup
	work.Go(func() { marks(ctx, base, round, k) })
	work.Go(func() { pushes(ctx, base, source, round, k) })
	work.Go(func() { launches(ctx, base, k) })
	for i := range 5 {
		storetest.Run{N: 1000 + 10*round + i}.Write(t, root, fmt.Sprintf("round-%d/run-%d", round, i))
	}
	<-ctx.Done()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = c.Wait() // killed
	work.Wait()
}

// call asks a server that may be killed at any moment, and reports whether it was answered as wanted.
func call(ctx context.Context, method, address, kind, body string, want int, answer any) bool {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return false
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("Accept", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == want && json.Unmarshal(b, answer) == nil
}

func marks(ctx context.Context, base string, round int, k *kept) {
	var list struct{ Entries []store.Entry }
	if !call(ctx, http.MethodGet, base+"/api/v1/entries?limit=100", "", "", http.StatusOK, &list) {
		return
	}
	for n := 0; ctx.Err() == nil && len(list.Entries) > 0; n++ {
		id, tag := list.Entries[n%len(list.Entries)].ID, fmt.Sprintf("tag-%d-%d", round, n)
		body := fmt.Sprintf(`{"marks":[{"do":"tag","value":%q}]}`, tag)
		if call(ctx, http.MethodPost, base+"/api/v1/entries/"+id+"/marks", "application/json", body, http.StatusOK, &struct{}{}) {
			k.add(func() { k.tags[id] = append(k.tags[id], tag) })
		}
	}
}

func pushes(ctx context.Context, base, source string, round int, k *kept) {
	for n := 0; ctx.Err() == nil && n < 40; n++ {
		at := filepath.Join(source, fmt.Sprintf("push-%02d", (n+7*round)%40))
		done, err := push.Push(ctx, push.Options{URL: base, Patience: time.Millisecond}, []string{at}, nil)
		if err == nil {
			k.add(func() { k.pushed = append(k.pushed, done[0].Entry) })
		}
	}
}

// launches asks for one: each is a process, and there are several servers.
func launches(ctx context.Context, base string, k *kept) {
	var l launch.Launch
	body := `{"bench":{"flags":{"base-url":["http://127.0.0.1:9"],"num-prompts":["1"]}}}`
	for range 2 {
		if call(ctx, http.MethodPost, base+"/api/v1/launches", "application/json", body, http.StatusCreated, &l) && l.ID != "" {
			k.add(func() { k.launches = append(k.launches, l.ID) })
		}
	}
}

// check says what is not there of what servers said that they keep.
func (k *kept) check(t *testing.T, lab *webtest.Lab) {
	t.Helper()
	for id, tags := range k.tags {
		e, err := lab.Store().Get(t.Context(), id)
		for _, tag := range tags {
			if err != nil || !slices.Contains(e.Marks.Tags, tag) {
				t.Errorf("%s lost the tag %s: %v", id, tag, err)
			}
		}
	}
	for _, id := range k.pushed {
		if e, err := lab.Store().Get(t.Context(), id); err != nil || e.Fault != "" {
			t.Errorf("what was pushed as %s: %q, %v", id, e.Fault, err)
		}
	}
	for _, id := range k.launches {
		until(t, "launch "+id+" ends", func() bool {
			l, err := lab.Queue().Get(id)
			if err != nil {
				t.Fatalf("launch %s is lost: %v", id, err)
			}
			return l.State == launch.Ended
		})
	}
	for _, l := range lab.Queue().List() {
		if l.Fault != "" {
			t.Errorf("launch %s: %s", l.ID, l.Fault)
		}
	}
	if err := lab.Queue().ReadOnly(); err != nil {
		t.Errorf("a lock is left: %v", err)
	}
}

// whole holds the index against one that is made anew, and looks for halves.
func whole(t *testing.T, lab *webtest.Lab, root string) {
	t.Helper()
	storetest.Sync(t, lab.Store())
	anew, err := store.Open(t.Context(), store.Options{Roots: []string{root}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer anew.Close()
	storetest.Sync(t, anew)
	got, want := all(t, lab.Store()), all(t, anew)
	if got != want {
		t.Errorf("the index has\n%s\nand one that is made anew\n%s", got, want)
	}
	if notes := lab.Store().Info().Notes; len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
	for _, e := range storetest.List(t, lab.Store(), store.Query{Limit: store.MostPage}).Entries {
		if e.Fault != "" || e.State == "running" || strings.Contains(e.Places[0].Path, ".perflab") || !complete(e.Dir()) {
			t.Errorf("a half is shown: %s in %s, %s %q", e.Name, e.Places[0].Path, e.State, e.Fault)
		}
	}
}

// complete says that a directory has what its kind has, or is a study.
func complete(dir string) bool {
	for _, name := range []string{"summary.json", "study.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		} else if !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return false
}

// all are all entries of an index.
func all(t *testing.T, s *store.Store) string {
	t.Helper()
	b, err := json.Marshal(storetest.List(t, s, store.Query{Order: "id", Limit: store.MostPage, Figures: []string{"*"}}).Entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
