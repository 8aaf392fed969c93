package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/store"
	"perflab/internal/store/mark"
	"perflab/internal/store/scan"
)

// testFollow: new, changed, moved and deleted directories, and a run on its way.
func testFollow(t *testing.T, open Opener) {
	root := some(t)
	s := open(t, root)
	Sync(t, s)
	a := byName(t, s, "a")

	rename(t, filepath.Join(root, "a"), filepath.Join(root, "renamed"))
	if c := Sync(t, s); len(c.Added) > 0 || !slices.Equal(c.Changed, []string{a.ID}) || len(c.Removed) > 0 {
		t.Errorf("moved: %+v", c)
	}
	if e := byName(t, s, "renamed"); e.ID != a.ID {
		t.Errorf("it has another ID: %s", e.ID)
	}

	remove(t, filepath.Join(root, "b"))
	b := Sync(t, s)
	want(t, Names(List(t, s, store.Query{})), "d", "c", "renamed")
	if len(b.Removed) != 1 || len(b.Changed) > 0 {
		t.Errorf("deleted: %+v", b)
	}

	r := Run{N: 2, Simulated: true, Figures: map[string]float64{"p99_ttft_ms": 7}}
	WriteJSON(t, filepath.Join(root, "c", "summary.json"), r.Summary())
	if c := Sync(t, s); len(c.Changed) != 1 || c.Version <= b.Version {
		t.Errorf("changed: %+v", c)
	}
	if f, _ := byName(t, s, "c").Figure("p99_ttft_ms"); f.Value != 7 {
		t.Errorf("figure %v", f)
	}

	partial := Run{N: 9}
	dir := filepath.Join(root, "e.tmp")
	Mkdir(t, dir)
	WriteJSON(t, filepath.Join(dir, "header.json"), partial.Header())
	partial.WriteCalls(t, dir)
	Sync(t, s)
	early := byName(t, s, "e")
	if early.State != scan.Stopped || early.Kind != scan.Run {
		t.Errorf("a run that was cut off: %+v", early.Facts)
	}
	if err := s.Mark(context.Background(), "ada", early.ID, Tagged("kept")); err != nil {
		t.Fatal(err)
	}
	remove(t, dir)
	partial.Write(t, root, "e")
	Sync(t, s)
	if e := byName(t, s, "e"); e.State != scan.Finished || e.ID == early.ID || e.Early != early.ID || !slices.Equal(e.Marks.Tags, []string{"kept"}) {
		t.Errorf("a run that ended: %+v %+v", e.Facts, e.Marks)
	}
}

// testPlaces: a run that lies in two places is one entry, whichever of them is there.
func testPlaces(t *testing.T, open Opener) {
	root := t.TempDir()
	study := Study(t, root, "study", 1, 2)
	run := Run{N: 1001, Command: "vllm serve Qwen/Qwen3-8B -tp 1"}
	run.Write(t, root, "a-copy")
	s := open(t, root)
	Sync(t, s)
	p := List(t, s, store.Query{Filter: "kind=run"})
	if p.Total != 2 {
		t.Fatalf("%d runs: %q", p.Total, Names(p))
	}
	e := List(t, s, store.Query{Filter: "trial=1"}).Entries[0]
	if len(e.Places) != 2 || e.Places[0].Path != "study/trials/001/chat" || e.Name != "chat" || e.EngineVersion != "0.11.0" || e.Parent == "" {
		t.Errorf("%+v %+v", e.Places, e.Facts)
	}
	remove(t, filepath.Join(study, "trials", "001"))
	Sync(t, s)
	e2, err := s.Get(context.Background(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(e2.Places) != 1 || e2.Name != "a-copy" || e2.Parent != "" || e2.Trial != 0 {
		t.Errorf("%+v %+v", e2.Places, e2.Facts)
	}
}

func testMarks(t *testing.T, open Opener) {
	root := some(t)
	s := open(t, root)
	Sync(t, s)
	ctx := context.Background()
	a := byName(t, s, "a")
	before, err := s.Version(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Mark(ctx, "ada", a.ID[:8], Tagged("keep"), Tagged("best"), mark.Record{Do: mark.Name, Value: "the good one"}, mark.Record{Do: mark.Pin},
		mark.Record{Do: mark.Note, Text: "with the new driver"}, mark.Record{Do: mark.Issue, Value: "ENG-7", Text: "a clock that is off", Link: "https://example.org/7"})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := s.Version(ctx); after <= before {
		t.Errorf("version %d after %d", after, before)
	}
	for _, filter := range []string{"tag=keep", "tag=~bes", "pinned=true", "driver", "issue=eng-7", `name="the good one"`, "note=~DRIVER", "tag=keep|none pinned=true"} {
		want(t, Names(List(t, s, store.Query{Filter: filter})), "the good one")
	}
	want(t, Names(List(t, s, store.Query{})), "the good one", "d", "c", "b")
	want(t, Names(List(t, s, store.Query{Filter: "tag!=keep"})), "d", "c", "b")
	e, err := s.Get(ctx, "the good one")
	if err != nil || e.ID != a.ID || e.Marks.By != "ada" || len(e.Marks.Issues) != 1 || len(e.Figures) != len(a.Figures) {
		t.Errorf("%+v, %v", e.Marks, err)
	}
	if c := Sync(t, s); c.Any() {
		t.Errorf("marks are not what directories have: %+v", c)
	}
	if err := s.Mark(ctx, "ada", a.ID, mark.Record{Do: mark.Untag, Value: "keep"}, mark.Record{Do: mark.Unpin}); err != nil {
		t.Fatal(err)
	}
	want(t, Names(List(t, s, store.Query{Filter: "tag=keep"})))
	// Another process adds to the file.
	err = mark.Append(filepath.Join(root, store.Folder, "marks.jsonl"), mark.Record{At: time.Now(), Who: "bob", Entry: a.ID, Do: mark.Tag, Value: "other"})
	if err != nil {
		t.Fatal(err)
	}
	Sync(t, s)
	want(t, Names(List(t, s, store.Query{Filter: "tag=other"})), "the good one")
	if log, err := s.History(ctx, a.ID); err != nil || len(log) != 9 || log[8].Who != "bob" {
		t.Errorf("history %+v, %v", log, err)
	}
	if err := s.Mark(ctx, "ada", a.ID, Tagged("two words")); err == nil {
		t.Error("a tag of two words was taken")
	}
}

func testGet(t *testing.T, open Opener) {
	root := some(t)
	s := open(t, root)
	Sync(t, s)
	ctx := context.Background()
	d := byName(t, s, "d")
	for _, what := range []string{d.ID, d.ID[:6], "d", filepath.Join(root, "deep", "er", "d"), filepath.Join(root, "deep", "er", "d") + "/"} {
		if e, err := s.Get(ctx, what); err != nil || e.ID != d.ID {
			t.Errorf("%s: %s, %v", what, e.ID, err)
		}
	}
	for _, what := range []string{"", "zzz", "0", "%", "' OR 1=1 --", d.ID + "0", "a\x00", "\xff", root} {
		e, err := s.Get(ctx, what)
		if _, none := errors.AsType[*store.NotFoundError](err); !none {
			t.Errorf("%q: %+v, %v", what, e.ID, err)
		}
	}
}

func testParts(t *testing.T, open Opener) {
	root := t.TempDir()
	dir := Study(t, root, "study", 3, 3)
	s := open(t, root)
	Sync(t, s)
	study := byName(t, s, "study")
	if h := study.Headline; h == nil || h.Best != "TP2" || h.Trials != 3 || h.Gain == nil || *h.Low >= *h.Gain || study.Title != "Optimizing Qwen3-8B, part 3" {
		t.Errorf("%+v", study.Headline)
	}
	parts, err := s.Parts(context.Background(), study.ID, "p99_ttft")
	if err != nil || len(parts) != 3 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	for i, p := range parts {
		if p.Trial != i+1 || p.Parent != study.ID || p.Hardware != study.Hardware || p.Load != "Random dataset, 10 requests" {
			t.Errorf("part %d: %+v", i, p.Facts)
		}
	}
	if parts[0].Config == parts[1].Config {
		t.Error("two configurations have one key")
	}
	// What the study says of a run is a fact of the run.
	s2 := StudyOf(3)
	WriteJSON(t, filepath.Join(dir, "study.json"), s2)
	Sync(t, s)
	if parts, _ = s.Parts(context.Background(), study.ID); len(parts) != 3 || parts[0].Trial != 0 {
		t.Errorf("%+v", parts)
	}
}

// testHostile: names and texts that somebody chose to break something with.
func testHostile(t *testing.T, open Opener) {
	root := t.TempDir()
	names := []string{`'; DROP TABLE entries; --`, `<script>alert(1)</script>`, "new\nline", "tab\t", `100%_\`, "\xff\xfe", "%FF", "$(id)", "ünï", strings.Repeat("x", 250)}
	for i, name := range names {
		r := Run{N: i, Model: name + "\x00\x1b[31m", Command: "vllm serve m --api-key sk-secret-1234567890abcdef"}
		r.Write(t, root, name)
	}
	Mkdir(t, filepath.Join(root, "rubbish"))
	WriteFile(t, filepath.Join(root, "rubbish", "header.json"), []byte("{not JSON"))
	WriteFile(t, filepath.Join(root, "rubbish", "calls.jsonl"), nil)
	WriteFile(t, filepath.Join(root, "rubbish.json"), []byte("x"))
	if err := os.Symlink(root, filepath.Join(root, "loop")); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	if c := Sync(t, s); c.Places != len(names)+1 {
		t.Errorf("%+v", c)
	}
	p := List(t, s, store.Query{Limit: 100})
	if p.Total != len(names)+1 {
		t.Fatalf("%d entries", p.Total)
	}
	for _, e := range p.Entries {
		if e.Name == "rubbish" {
			if !strings.Contains(e.Fault, "header.json") {
				t.Errorf("fault %q", e.Fault)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(e.Dir(), "header.json")); err != nil {
			t.Errorf("%q lies in %q: %v", e.Name, e.Dir(), err)
		}
		b, err := json.Marshal(e)
		if err != nil || strings.Contains(string(b), "secret") || strings.ContainsRune(e.Model, 0) {
			t.Errorf("%s: %v", b, err)
		}
		// Everything that an entry says can be asked for.
		quoted := `model="` + e.Model + `"`
		if got := List(t, s, store.Query{Filter: quoted}); !strings.Contains(e.Model, `"`) && got.Total == 0 {
			t.Errorf("%s finds nothing", quoted)
		}
	}
	if c := Sync(t, s); c.Any() {
		t.Errorf("nothing changed, and there is %+v", c)
	}
}

// rows are all entries, as JSON.
func rows(t *testing.T, s *store.Store) string {
	t.Helper()
	p := List(t, s, store.Query{Order: "id", Limit: store.MostPage, Figures: []string{"*"}})
	b, err := json.Marshal(p.Entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// testRebuild: an index that followed every step is that which is made of the end.
func testRebuild(t *testing.T, open Opener) {
	root := some(t)
	Study(t, root, "study", 1, 3)
	s := open(t, root)
	Sync(t, s)
	Run{N: 1002, Command: "vllm serve Qwen/Qwen3-8B -tp 2"}.Write(t, root, "0-copy-of-a-trial")
	Run{N: 8}.Write(t, root, "z")
	Sync(t, s)
	if err := s.Mark(context.Background(), "ada", "z", Tagged("keep")); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(root, "study"), filepath.Join(root, "moved"))
	remove(t, filepath.Join(root, "b"))
	Sync(t, s)
	followed := rows(t, s)
	if err := s.Forget(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := List(t, s, store.Query{}).Total; n != 0 {
		t.Errorf("%d entries after all was forgotten", n)
	}
	Sync(t, s)
	if again := rows(t, s); again != followed {
		t.Errorf("made anew:\n%s\nfollowed:\n%s", again, followed)
	}
}

func testWait(t *testing.T, open Opener) {
	root := some(t)
	s := open(t, root)
	c := Sync(t, s)
	ctx := context.Background()
	if v, err := s.Wait(ctx, c.Version-1); err != nil || v != c.Version {
		t.Errorf("version %d, %v", v, err)
	}
	short, cancel := context.WithCancelCause(ctx)
	gone := errors.New("the reader is gone")
	cancel(gone)
	if _, err := s.Wait(short, c.Version); !errors.Is(err, gone) {
		t.Error(err)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if v, err := s.Wait(ctx, c.Version); err != nil || v <= c.Version {
				t.Errorf("version %d, %v", v, err)
			}
		})
	}
	Run{N: 77}.Write(t, root, "new")
	Sync(t, s)
	wait.Wait()
}

// testTwo: two servers at once over one directory, and what one changes the other sees.
func testTwo(t *testing.T, open Opener) {
	root := some(t)
	one, two := open(t, root), open(t, root)
	var wait sync.WaitGroup
	for _, s := range []*store.Store{one, two} {
		wait.Go(func() {
			for range 5 {
				if _, err := s.Sync(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		Run{N: 100 + i}.Write(t, root, string(rune('p'+i)))
	}
	wait.Wait()
	Sync(t, one)
	Sync(t, two)
	if a, b := rows(t, one), rows(t, two); a != b || strings.Count(a, `"kind":"run"`) != 9 {
		t.Errorf("one has\n%s\nthe other\n%s", a, b)
	}
	v, err := two.Version(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Mark(context.Background(), "ada", "a", Tagged("seen")); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Wait(context.Background(), v); err != nil {
		t.Fatal(err)
	}
	want(t, Names(List(t, two, store.Query{Filter: "tag=seen"})), "a")
}

func testTrash(t *testing.T, open Opener) {
	root := some(t)
	study := Study(t, root, "study", 1, 2)
	s := open(t, root)
	Sync(t, s)
	ctx := context.Background()
	if err := s.Mark(ctx, "ada", "d", Tagged("keep")); err != nil {
		t.Fatal(err)
	}
	gone, err := s.Remove(ctx, "ada", "d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(gone.Dir(), "header.json")); err != nil || gone.Path != "deep/er/d" {
		t.Errorf("%+v, %v", gone, err)
	}
	want(t, Names(List(t, s, store.Query{Filter: "kind=run parent=none"})), "c", "b", "a")
	if all, err := s.Trash(ctx); err != nil || !slices.Equal(all, []store.Removed{gone}) {
		t.Errorf("%+v, %v", all, err)
	}
	Mkdir(t, filepath.Join(root, "deep/er/d"))
	if err := s.Restore(ctx, "ada", gone); err == nil {
		t.Error("what lies there was overwritten")
	}
	remove(t, filepath.Join(root, "deep"))
	if err := s.Restore(ctx, "ada", gone); err != nil {
		t.Fatal(err)
	}
	want(t, Names(List(t, s, store.Query{Filter: "tag=keep"})), "d")
	if err := s.Restore(ctx, "ada", gone); err == nil {
		t.Error("what is not there was restored")
	}
	if err := s.Restore(ctx, "ada", store.Removed{Root: gone.Root, Path: "x", Trash: "../../a", Entry: gone.Entry}); err == nil {
		t.Error("a name outside of the trash was taken")
	}
	going := StudyOf(1)
	going.Partial = true
	WriteJSON(t, filepath.Join(study, "study.json"), going)
	hold(t, filepath.Join(study, "journal.jsonl"))
	Sync(t, s)
	for _, what := range []string{"study", study + "/trials/001/chat"} {
		if _, err := s.Remove(ctx, "ada", what); err == nil {
			t.Errorf("%s goes on and was removed", what)
		} else if _, busy := errors.AsType[*store.InUseError](err); !busy {
			t.Error(err)
		}
	}
	if e := byName(t, s, "study"); e.State != scan.Running {
		t.Errorf("state %s", e.State)
	}
}

// testReduction: what plots draw is made once, and follows the run.
func testReduction(t *testing.T, open Opener) {
	root := some(t)
	Study(t, root, "study", 1, 1)
	s := open(t, root)
	Sync(t, s)
	ctx := context.Background()
	first, err := s.Reduction(ctx, "c")
	if err != nil || len(first.CDF) == 0 || !first.Simulated || first.Calls != 3 || first.Fault != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := s.Reduction(ctx, "c")
	if err != nil || !slices.Equal(again.CDF[0].Values, first.CDF[0].Values) {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := s.Reduction(ctx, "study"); err == nil {
		t.Error("a study has no calls")
	}
	WriteFile(t, filepath.Join(root, "a", "calls.jsonl"), []byte("{rubbish}\n{}\n"))
	Sync(t, s)
	if r, err := s.Reduction(ctx, "a"); err != nil || r.Fault == "" {
		t.Errorf("%+v, %v", r, err)
	}
	made := 0
	for more := true; more; made++ {
		if more, err = s.ReduceNext(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if made != 4 { // b, d, the run of the study, and the end
		t.Errorf("%d were made", made-1)
	}
}
