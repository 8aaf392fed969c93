package store_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

// victim is the variable that makes the test program one that is killed: it names the root.
const victim = "PERFLAB_TEST_STORE_VICTIM"

// benchRoot has many runs and studies; it is made by the first benchmark that wants it.
var benchRoot string

func TestMain(m *testing.M) {
	if root := os.Getenv(victim); root != "" {
		writeForEver(root)
	}
	status := m.Run()
	os.RemoveAll(benchRoot) // "" is nothing
	os.Exit(status)
}

// writeForEver makes an index anew again and again, and says each time that it begins.
func writeForEver(root string) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Roots: []string{root}})
	for err == nil {
		fmt.Println("begins")
		if err = s.Forget(ctx); err == nil {
			_, err = s.Sync(ctx)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKill: whenever a writer is killed, the index is whole, nothing stays locked, and the next look
// completes it.
func TestKill(t *testing.T) {
	root := t.TempDir()
	storetest.Many(t, root, 40, 3)
	want := entries(t, open(t, store.Options{Roots: []string{root}, Dir: t.TempDir()}))
	for round := range 6 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), victim+"="+root)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + round {
			if !lines.Scan() {
				t.Fatal("it ended by itself")
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // to the end
		}
		_ = c.Wait() // killed
		s, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Info().Notes) > 0 {
			t.Errorf("notes %q", s.Info().Notes)
		}
		if got := entries(t, s); got != want {
			t.Errorf("after a kill:\n%s\nwant\n%s", got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// entries are all of them, as JSON, once the directories were followed.
func entries(t *testing.T, s *store.Store) string {
	t.Helper()
	storetest.Sync(t, s)
	b, err := json.Marshal(storetest.List(t, s, store.Query{Order: "id", Limit: store.MostPage, Figures: []string{"*"}}).Entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
