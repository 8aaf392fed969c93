package mark_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/store/mark"
)

var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func record(n int, do mark.Act, value string) mark.Record {
	return mark.Record{At: began.Add(time.Duration(n) * time.Second), Who: "ada", Entry: "cafe", Do: do, Value: value}
}

func TestOf(t *testing.T) {
	note := record(4, mark.Note, "")
	note.Text = "slow disk"
	issue := record(6, mark.Issue, "ENG-7")
	issue.Text, issue.Link = "clock", "https://example.org/7"
	all := []mark.Record{
		record(1, mark.Tag, "b"), record(2, mark.Tag, "a"), record(3, mark.Tag, "b"), note, record(5, mark.Name, "best"), issue,
		record(7, mark.Pin, ""), record(8, mark.Untag, "b"), record(9, mark.Issue, "ENG-8"), record(10, mark.Resolve, "ENG-8"),
	}
	want := mark.Marks{
		Name: "best", Tags: []string{"a"}, Note: "slow disk", By: "ada", At: note.At, Pinned: true,
		Issues: []mark.KnownIssue{{ID: "ENG-7", Text: "clock", Link: "https://example.org/7", By: "ada", At: issue.At}},
	}
	if got := mark.Of(all); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	slices.Reverse(all) // files of several roots are read one after another: what counts is when
	if got := mark.Of(all); !reflect.DeepEqual(got, want) {
		t.Errorf("backwards %+v", got)
	}
	all = append(all, record(11, mark.Note, ""), record(12, mark.Name, ""), record(13, mark.Unpin, ""), record(14, mark.Untag, "a"), record(15, mark.Resolve, "ENG-7"))
	if m := mark.Of(all); !m.Empty() {
		t.Errorf("all was taken back: %+v", m)
	}
}

func TestValidate(t *testing.T) {
	for name, r := range map[string]mark.Record{
		"no entry":   {Do: mark.Pin},
		"no act":     {Entry: "x"},
		"other act":  {Entry: "x", Do: "burn"},
		"no tag":     record(1, mark.Tag, " "),
		"two words":  record(1, mark.Tag, "two words"),
		"comma":      record(1, mark.Tag, "a,b"),
		"long tag":   record(1, mark.Tag, strings.Repeat("x", 65)),
		"line":       record(1, mark.Name, "a\nb"),
		"no UTF-8":   record(1, mark.Name, "\xff"),
		"long note":  {Entry: "x", Do: mark.Note, Text: strings.Repeat("x", 8001)},
		"script":     {Entry: "x", Do: mark.Issue, Value: "E", Link: "javascript:alert(1)"},
		"NUL":        {Entry: "x", Do: mark.Note, Text: "a\x00"},
		"nameless":   record(1, mark.Issue, ""),
		"bare":       {Entry: "x", Do: mark.Resolve},
		"unreadable": record(1, mark.Tag, "\x1b[31m"),
	} {
		path := filepath.Join(t.TempDir(), "marks.jsonl")
		if err := mark.Append(path, record(0, mark.Pin, ""), r); err == nil {
			t.Errorf("%s: %+v was taken", name, r)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}

// TestTorn: a file that a kill cut at any byte loses the line that was being written and no other, and
// takes further ones.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks.jsonl")
	if err := mark.Append(path, record(1, mark.Tag, "first"), record(2, mark.Tag, "second")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n')
	for cut := range len(whole) + 1 {
		path := filepath.Join(t.TempDir(), "marks.jsonl")
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := mark.Append(path, record(3, mark.Tag, "third")); err != nil {
			t.Fatal(err)
		}
		log, err := mark.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"third"}
		if cut >= first { // a line is whole without its end, too
			want = []string{"first", "third"}
		}
		if cut >= len(whole)-1 {
			want = []string{"first", "second", "third"}
		}
		if got := mark.Of(log.Records).Tags; !slices.Equal(got, want) || len(log.Records)+log.Skipped > 3 {
			t.Fatalf("cut at %d: %q, want %q", cut, got, want)
		}
	}
}

// TestOthers: lines that are no records, or far too long ones, take none of the others along.
func TestOthers(t *testing.T) {
	text := `{"at":"2026-11-01T12:00:00Z","entry":"x","do":"tag","value":"a"}` + "\nrubbish\n\n" +
		`{"at":"2026-11-01T12:00:00Z","entry":"x","do":"of-a-newer-version"}` + "\n" + strings.Repeat("x", 300_000) + "\n" +
		`{"at":"2026-11-01T12:00:01Z","entry":"x","do":"tag","value":"b"}`
	log, err := mark.Parse(strings.NewReader(text))
	if err != nil || log.Skipped != 3 || len(log.Records) != 2 {
		t.Errorf("%+v, %v", log, err)
	}
	if log, err := mark.Read(filepath.Join(t.TempDir(), "none")); err != nil || len(log.Records) != 0 {
		t.Errorf("%+v, %v", log, err)
	}
}

// writer is the variable that makes the test program one that appends: it names the file.
const writer = "PERFLAB_TEST_MARK_WRITER"

func TestMain(m *testing.M) {
	path := os.Getenv(writer)
	if path == "" {
		os.Exit(m.Run())
	}
	for i := range 20 {
		if err := mark.Append(path, record(i, mark.Tag, "of-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(i))); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	}
}

// TestProcesses: processes that append at once lose no record of each other.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks.jsonl")
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), writer+"="+path)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wait.Wait()
	log, err := mark.Read(path)
	if err != nil || len(log.Records) != 60 || log.Skipped != 0 {
		t.Errorf("%d records, %d skipped, %v", len(log.Records), log.Skipped, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"at":"2026-11-01T12:00:00Z","entry":"x","do":"tag","value":"a"}` + "\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		log, err := mark.Parse(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range log.Records {
			if err := r.Validate(); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
		}
		mark.Of(log.Records)
	})
}
