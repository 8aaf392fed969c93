package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/tune"
	"perflab/internal/tune/staged"
)

// disk keeps what was written and what of it is safe; it fails from the
// write numbered fail on (1, 2, ...), having taken half of it.
type disk struct {
	bytes.Buffer
	safe, writes, fail int
}

func (d *disk) Write(p []byte) (int, error) {
	d.writes++
	if d.fail > 0 && d.writes >= d.fail {
		n, _ := d.Buffer.Write(p[:len(p)/2])
		return n, errors.New("no space left on device")
	}
	return d.Buffer.Write(p)
}

func (d *disk) Sync() error {
	d.safe = d.Len()
	return nil
}

var head = Head{Study: "0123456789abcdef"}

// record plays a study through a journal from its beginning.
func record(t testing.TB, s tune.Strategy, d *disk, b bench) error {
	t.Helper()
	j, err := Open(d, Log{}, head)
	if err != nil {
		return err
	}
	return Run(t.Context(), s, j, evaluate(t, j, b, nil))
}

// evaluate notes a launch before and a run after the deed, and counts it.
func evaluate(t testing.TB, j *Journal, b bench, deeds *[]int) Lab {
	return InTurn(func(_ context.Context, p tune.Proposal) (tune.Observation, error) {
		if err := j.Note(KindLaunched, p.Trial, map[string]string{"command": "serve <" + words(p) + "> && x"}); err != nil {
			return tune.Observation{}, err
		}
		o := b.end(t, p)
		if deeds != nil {
			*deeds = append(*deeds, p.Trial)
		}
		return o, j.Note(KindRun, p.Trial, "runs/1")
	})
}

func replay(t testing.TB, journal []byte) Log {
	t.Helper()
	log, err := Replay(bytes.NewReader(journal))
	if err != nil {
		t.Fatalf("%v in\n%s", err, journal)
	}
	return log
}

// TestJournalCutAnywhere: whatever part of the journal a crash leaves, the
// study resumes to the same result, and no recorded trial is measured again.
func TestJournalCutAnywhere(t *testing.T) {
	space, budget := one("A", "B", "C"), tune.Budget{Trials: 5}
	b := bench{"0": "1", "A": "failed: no port", "B": "2", "C": "3"}
	full := &disk{}
	first := inStages(t, space, up, budget)
	if err := record(t, first, full, b); err != nil {
		t.Fatal(err)
	}
	if want := `{"seq":3,"kind":"launched","trial":1,"data":{"command":"serve <0> && x"},"sum":"`; !strings.Contains(full.String(), want) {
		t.Errorf("no line %s in\n%s", want, full)
	}
	want := first.Result()
	var last Log
	for cut := range full.Len() + 1 {
		left := full.Bytes()[:cut]
		log := replay(t, left)
		if log.Size+log.Cut != int64(cut) {
			t.Fatalf("cut at %d: size %d and cut %d", cut, log.Size, log.Cut)
		}
		if log.Cut > 0 { // the same as cut at the end of the last whole line
			last.Cut = log.Cut
			if !reflect.DeepEqual(last, log) {
				t.Fatalf("cut at %d: log %+v, before this line %+v", cut, log, last)
			}
			continue
		}
		last = log
		var d disk
		d.Write(left[:log.Size])
		j, err := Open(&d, log, head)
		if err != nil {
			t.Fatal(err)
		}
		s := inStages(t, space, up, budget)
		pending, err := Resume(s, log)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		var missing, deeds []int
		for i := range 5 {
			if i >= len(log.Trials) || log.Trials[i].Observation == nil {
				missing = append(missing, i+1)
			}
		}
		if open := log.Open(); len(open) != len(pending) || len(open) > 1 || len(open) == 1 && open[0].Trial != missing[0] {
			t.Fatalf("cut at %d: pending %v, open %v", cut, pending, open)
		}
		if err := Run(t.Context(), s, j, evaluate(t, j, b, &deeds)); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if !slices.Equal(deeds, missing) {
			t.Fatalf("cut at %d: trials %v are measured, want %v", cut, deeds, missing)
		}
		if diff := cmp.Diff(want, s.Result()); diff != "" {
			t.Fatalf("cut at %d: result (-whole +resumed):\n%s", cut, diff)
		}
		if end := replay(t, d.Bytes()); !end.Ended || len(end.Trials) != 5 {
			t.Fatalf("cut at %d: the journal ends with\n%s", cut, d.String())
		}
	}
}

// TestRunWritesBeforeTheDeed: a proposal is safe before it is evaluated, an
// end before the strategy hears it.
func TestRunWritesBeforeTheDeed(t *testing.T) {
	d := &disk{}
	j, err := Open(d, Log{}, head)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	s := &spy{Strategy: inStages(t, one("A"), up, tune.Budget{}), tell: func(o tune.Observation) {
		told++
		log := replay(t, d.Bytes()[:d.safe])
		if n := len(log.Trials); n != o.Trial || log.Open() != nil {
			t.Errorf("told the end of trial %d, %d are safe, open %v", o.Trial, n, log.Open())
		}
	}}
	err = Run(t.Context(), s, j, InTurn(func(_ context.Context, p tune.Proposal) (tune.Observation, error) {
		if open := replay(t, d.Bytes()[:d.safe]).Open(); len(open) != 1 || open[0].Trial != p.Trial {
			t.Errorf("trial %d is evaluated while open is %v", p.Trial, open)
		}
		o := bench{"0": "1", "A": "2"}.end(t, p)
		o.Figures["w"]["odd"] = math.Inf(1) // JSON has none: must not cost the trial
		if p.Label == "A" {                 // JSON has no such text either
			o = tune.Observation{Status: tune.Refused, Reason: "\xff\xfe"}
		}
		p.Config["x"] = "scribbled"
		return o, nil
	}))
	if err != nil || told != 3 {
		t.Errorf("%d ends told, error %v", told, err)
	}
	resumed := inStages(t, one("A"), up, tune.Budget{})
	if _, err := Resume(resumed, replay(t, d.Bytes())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Result(), resumed.Result()); diff != "" {
		t.Errorf("result (-first +resumed):\n%s", diff)
	}
	if !strings.HasPrefix(d.String(), `{"seq":1,"kind":"study","study":{"format":"perflab.journal/2","hash":"0123456789abcdef"},"sum":"1b13c17f613c409f"}`+"\n"+`{"seq":2,"kind":"proposed",`) {
		t.Errorf("the journal begins\n%s", d.String())
	}
}

type spy struct {
	tune.Strategy
	tell func(tune.Observation)
}

func (s *spy) Tell(o tune.Observation) {
	s.tell(o)
	s.Strategy.Tell(o)
}

func TestRunStops(t *testing.T) {
	stop := errors.New("interrupted")
	figures := bench{"0": "1", "A": "2"}
	t.Run("before the next trial", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		d := &disk{}
		j, _ := Open(d, Log{}, head)
		err := Run(ctx, inStages(t, one("A"), up, tune.Budget{}), j, InTurn(func(_ context.Context, p tune.Proposal) (tune.Observation, error) {
			cancel(stop)
			return figures.end(t, p), nil
		}))
		if !errors.Is(err, stop) || err.Error() != "stop before trial 2 (A): interrupted" {
			t.Errorf("error %v", err)
		}
		if log := replay(t, d.Bytes()); len(log.Trials) != 1 || log.Open() != nil || log.Ended {
			t.Errorf("the trial under way is not kept: %s", d.String())
		}
	})
	t.Run("evaluate fails", func(t *testing.T) {
		d := &disk{}
		j, _ := Open(d, Log{}, head)
		err := Run(t.Context(), inStages(t, one("A"), up, tune.Budget{}), j, InTurn(func(context.Context, tune.Proposal) (tune.Observation, error) {
			return tune.Observation{}, stop
		}))
		if !errors.Is(err, stop) || err.Error() != "trial 1 (baseline): interrupted" {
			t.Errorf("error %v", err)
		}
		if open := replay(t, d.Bytes()).Open(); len(open) != 1 || open[0].Trial != 1 {
			t.Errorf("open %v, want trial 1", open)
		}
	})
}

// TestJournalFullDisk: at whichever write the disk is full, what was safe
// resumes, and the journal writes nothing after the cut line.
func TestJournalFullDisk(t *testing.T) {
	figures := bench{"0": "1", "A": "2"}
	whole := &disk{}
	if err := record(t, inStages(t, one("A"), up, tune.Budget{}), whole, figures); err != nil {
		t.Fatal(err)
	}
	for fail := 1; fail <= whole.writes; fail++ {
		d := &disk{fail: fail}
		err := record(t, inStages(t, one("A"), up, tune.Budget{}), d, figures)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("write journal record %d (", fail)) {
			t.Fatalf("write %d: error %v", fail, err)
		}
		if d.writes != fail {
			t.Errorf("%d writes after the one that did not fit", d.writes-fail)
		}
		log := replay(t, d.Bytes())
		if int(log.Size) != d.safe || log.Cut == 0 {
			t.Errorf("write %d: size %d and cut %d, safe %d", fail, log.Size, log.Cut, d.safe)
		}
	}
}

// TestJournalStaysBroken: a line after a cut one could not be read back.
func TestJournalStaysBroken(t *testing.T) {
	d := &disk{fail: 2}
	j, err := Open(d, Log{}, head)
	if err != nil {
		t.Fatal(err)
	}
	first := j.Append(Record{Kind: KindEnd})
	d.fail = 0 // there is room again
	if again := j.Append(Record{Kind: KindEnd}); first == nil || !errors.Is(again, first) || d.writes != 2 {
		t.Errorf("errors %v and %v, %d writes", first, again, d.writes)
	}
}

func TestResumeRefusesAnotherStudy(t *testing.T) {
	d := &disk{}
	if err := record(t, inStages(t, one("A", "B"), up, tune.Budget{}), d, bench{"0": "1", "A": "2", "B": "3"}); err != nil {
		t.Fatal(err)
	}
	log := replay(t, d.Bytes())
	before := d.Len()
	_, err := Open(d, log, Head{Study: "fedcba9876543210"})
	if want := "the journal is of another study (0123456789ab, this one is fedcba987654): resume with the study file it was begun with, or begin anew in an empty directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if d.Len() != before {
		t.Error("the journal of another study was written to")
	}
	for name, space := range map[string]tune.Space{"other": one("A", "C"), "shorter": one("A"), "longer": one("A", "B", "C")} {
		if _, err := Resume(inStages(t, space, up, tune.Budget{}), log); err == nil || !strings.Contains(err.Error(), "made by another study or version") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	var surveyed disk
	s, _ := staged.NewSurvey(models("0", "A"), []string{"w"}, up)
	if err := record(t, s, &surveyed, bench{"0": "1", "A": "2"}); err != nil {
		t.Fatal(err)
	}
	s, _ = staged.NewSurvey(models("0", "A", "B"), []string{"w"}, up)
	if _, err := Resume(s, replay(t, surveyed.Bytes())); err == nil || !strings.Contains(err.Error(), "its trial 3 is not the one") {
		t.Errorf("longer survey: error %v", err)
	}
	// Run itself does not trust an open proposal either.
	open := replay(t, bytes.Join(bytes.SplitAfter(d.Bytes(), []byte("\n"))[:2], nil))
	j, err := Open(&disk{}, open, head)
	if err != nil {
		t.Fatal(err)
	}
	other := one("A")
	other.Baseline = tune.Config{"x": "9"}
	if err := Run(t.Context(), inStages(t, other, up, tune.Budget{}), j, InTurn(nil)); err == nil || !strings.Contains(err.Error(), "its trial 1 is not the one") {
		t.Errorf("run: error %v", err)
	}
	if open.Open() == nil {
		t.Error("a journal changes the log it was opened with")
	}
}

const (
	study    = `{"seq":1,"kind":"study","study":{"format":"perflab.journal/1","hash":"h"}}` + "\n"
	proposed = `{"seq":2,"kind":"proposed","proposal":{"trial":1,"stage":"s","label":"l","config":{"x":"1"},"workloads":["w"],"pass":0}}` + "\n"
	launched = `{"seq":3,"kind":"launched","trial":1,"data":{"pid":7}}` + "\n"
	observed = `{"seq":4,"kind":"observed","observation":{"trial":1,"status":"ok","figures":{"w":{"m":1.5}},"wall_s":2}}` + "\n"
	ended    = `{"seq":5,"kind":"end"}` + "\n"
)

// summed is a line with its checksum.
func summed(line string) string { return string(appendSum([]byte(line))) }

// TestJournalChangedAnywhere: a journal of which one byte is another is refused, and the
// sentence names the line.
func TestJournalChangedAnywhere(t *testing.T) {
	d := &disk{}
	if err := record(t, inStages(t, one("A"), up, tune.Budget{}), d, bench{"0": "1", "A": "2"}); err != nil {
		t.Fatal(err)
	}
	whole, line := d.Bytes(), 1
	for i, was := range whole {
		changed := bytes.Clone(whole)
		switch {
		case was == '\n':
			line++
			continue // two lines in one, or a last line without its end
		case was >= '0' && was <= '8':
			changed[i]++
		default:
			changed[i] ^= 1
		}
		_, err := Replay(bytes.NewReader(changed))
		if want := fmt.Sprintf("journal line %d is damaged", line); err == nil || !strings.Contains(err.Error(), want) {
			if !errors.Is(err, errFormat) {
				t.Fatalf("byte %d, %c for %c: %v, want %s", i, changed[i], was, err, want)
			}
		}
	}
}

// TestOldJournalGoesOn: a journal without checksums goes on without them, so that it
// stays one that the version which began it can read.
func TestOldJournalGoesOn(t *testing.T) {
	d := &disk{}
	d.WriteString(study + proposed)
	j, err := Open(d, replay(t, d.Bytes()), Head{Study: "h"})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(j.Note(KindLaunched, 1, map[string]int{"pid": 7}), j.observe(*replay(t, []byte(study+proposed+launched+observed)).Trials[0].Observation), j.end())
	if err != nil || j.Checksums() || d.String() != study+proposed+launched+observed+ended {
		t.Errorf("%v, checksums %v\n%s", err, j.Checksums(), d)
	}
}

// TestChangedFingerprint: two fingerprints that are shown alike are not called
// those of different studies.
func TestChangedFingerprint(t *testing.T) {
	const hash = "0123456789abcdef"
	for was, want := range map[string]string{
		"0123456789abcdee":  "it begins as that of this study, but has 16 digits, of which number 16 differs; write 0123456789abcdef back",
		"0123456789abcd":    "but has 14 digits, of which number 15 differs",
		"0123456789abcdeff": "but has 17 digits, of which number 17 differs",
		"f123456789abcdef":  "the journal is of another study (f123456789ab, this one is 0123456789ab)",
		"h":                 "the journal is of another study (h, this one is 0123456789ab)",
	} {
		err := Log{Head: &Head{Study: was}}.Check(hash)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", was, err, want)
		}
	}
}

func TestReplay(t *testing.T) {
	log := replay(t, []byte(study+proposed+launched+observed+ended+`{"seq":6`))
	all := int64(len(study + proposed + launched + observed + ended))
	want := Log{
		Head: &Head{Format: oldFormat, Study: "h"}, Ended: true, Size: all, Cut: 8, records: 5,
		Trials: []Logged{{
			Proposal:    tune.Proposal{Trial: 1, Stage: "s", Label: "l", Config: tune.Config{"x": "1"}, Workloads: []string{"w"}},
			Observation: &tune.Observation{Trial: 1, Status: tune.Measured, Figures: map[string]map[string]float64{"w": {"m": 1.5}}, Seconds: 2}, Line: 4,
			Facts: []Fact{{KindLaunched, []byte(`{"pid":7}`)}},
		}},
	}
	if diff := cmp.Diff(want, log, cmp.AllowUnexported(Log{})); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestReplayRefuses(t *testing.T) {
	seq := func(n int, line string) string {
		_, rest, _ := strings.Cut(line, ",")
		return fmt.Sprintf(`{"seq":%d,%s`, n, rest)
	}
	tests := map[string]struct{ journal, want string }{
		"garbage in the middle": {study + "\x00\x00\n" + proposed, "journal line 2 is damaged: not a record"},
		"garbage at the end":    {study + "}\n", "journal line 2 is damaged: not a record"},
		"two on a line":         {strings.TrimSpace(study) + proposed, "journal line 1 is damaged: not a record: more follows"},
		"unknown key":           {study + `{"seq":2,"kind":"end","x":1}` + "\n", "unknown field"},
		"unknown kind":          {study + `{"seq":2,"kind":"x"}` + "\n", `kind "x" is unknown`},
		"record lost":           {study + proposed + observed, "line 3 is damaged: seq is 4 after 2"},
		"record doubled":        {study + proposed + proposed, "seq is 2 after 2"},
		"no study":              {seq(1, proposed), "a journal begins with its one study record"},
		"two studies":           {study + seq(2, study), "a journal begins with its one study record"},
		"empty study":           {`{"seq":1,"kind":"study"}` + "\n", "the study record is empty"},
		"later format":          {strings.Replace(study, "/1", "/3", 1), `the journal has another format: it is "perflab.journal/3" and this version reads "perflab.journal/2"`},
		"without checksum":      {strings.Replace(study, "/1", "/2", 1), "journal line 1 is damaged: it has no checksum; restore the file, or begin anew in an empty directory"},
		"checksum cut out":      {summed(strings.Replace(study, "/1", "/2", 1)) + proposed, "journal line 2 is damaged: it has no checksum; restore the file, or remove line 2 and those after it to have what they tell measured again"},
		"wrong checksum":        {study + strings.Replace(summed(proposed), `"x":"1"`, `"x":"2"`, 1), "journal line 2 is damaged: it was changed after it was written"},
		"spaces put in":         {strings.Replace(summed(study), `"hash":`, `"hash": `, 1), "journal line 1 is damaged: it was changed after it was written"},
		"two open":              {study + proposed + seq(3, proposed), "proposed is not the one of trial 2 after the end of the last"},
		"nothing proposed":      {study + `{"seq":2,"kind":"proposed"}` + "\n", "proposed is not the one of trial 1"},
		"trial left out":        {study + strings.Replace(proposed, `"trial":1`, `"trial":2`, 1), "proposed is not the one of trial 1"},
		"end of no trial":       {study + seq(2, observed), "observed is not the end of an open trial"},
		"end of another":        {study + proposed + seq(3, strings.Replace(observed, `"trial":1`, `"trial":2`, 1)), "observed is not the end of an open trial"},
		"unknown status":        {study + proposed + seq(3, strings.Replace(observed, `"ok"`, `"good"`, 1)), `the status "good": it is none of`},
		"failed is observed":    {study + proposed + seq(3, strings.Replace(observed, `"ok"`, `"failed"`, 1)), `observed has the status "failed"`},
		"fact of no trial":      {study + seq(2, launched), "launched is of trial 1, which is not open"},
		"end too early":         {study + proposed + seq(3, ended), "the end comes while trial 1 is open"},
		"after the end":         {study + seq(2, ended) + seq(3, proposed), "a record follows the end"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Replay(strings.NewReader(tt.journal))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestAppendRefuses: what Replay would not read is not written, and does not
// spoil the journal.
func TestAppendRefuses(t *testing.T) {
	d := &disk{}
	j, err := Open(d, Log{}, head)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Note(KindLaunched, 1, nil); err == nil || !strings.Contains(err.Error(), "trial 1, which is not open") {
		t.Errorf("error %v", err)
	}
	if err := j.Append(Record{Kind: KindProposed, Proposal: &tune.Proposal{Trial: 1}}); err != nil || d.writes != 2 {
		t.Errorf("%d writes, error %v", d.writes, err)
	}
}

func TestFingerprint(t *testing.T) {
	a, err := Fingerprint(map[string]any{"x": 1, "y": []int{2}})
	b, _ := Fingerprint(map[string]any{"y": []int{2}, "x": 1})
	c, _ := Fingerprint(map[string]any{"y": []int{3}, "x": 1})
	if err != nil || a != b || a == c || len(a) != 64 {
		t.Errorf("%s, %s, %s, error %v", a, b, c, err)
	}
	if _, err := Fingerprint(func() {}); err == nil {
		t.Error("a function has a fingerprint")
	}
}

// FuzzReplay: a journal that reads can be written again, and reads the same. One of the old
// format becomes one of the new.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(study + proposed + launched + observed + ended))
	f.Add([]byte(study + proposed + launched + `{"seq":4,"kind":"failed","observation":{"trial":1,"status":"failed","reason":"\ud800"}}` + "\n"))
	f.Add([]byte(study + proposed + `{"seq":3,"kind":"infra","trial":1}` + "\n" + `{"seq":`))
	f.Add([]byte("\n"))
	f.Add([]byte(summed(strings.Replace(study, "/1", "/2", 1)) + summed(proposed) + summed(launched) + summed(observed)))
	f.Fuzz(func(t *testing.T, journal []byte) {
		log, err := Replay(bytes.NewReader(journal))
		if err != nil {
			return
		}
		if log.Size+log.Cut != int64(len(journal)) {
			t.Fatalf("size %d and cut %d of %d bytes", log.Size, log.Cut, len(journal))
		}
		once := rewrite(t, log)
		if twice := rewrite(t, replay(t, once)); !bytes.Equal(once, twice) {
			t.Fatalf("written as\n%s, then as\n%s", once, twice)
		}
	})
}

// rewrite writes a log as a journal of its own.
func rewrite(t *testing.T, log Log) []byte {
	t.Helper()
	if log.Head == nil {
		return nil
	}
	d := &disk{}
	j, err := Open(d, Log{}, *log.Head)
	for _, l := range log.Trials {
		err = errors.Join(err, j.Append(Record{Kind: KindProposed, Proposal: &l.Proposal}))
		for _, fact := range l.Facts {
			err = errors.Join(err, j.Append(Record{Kind: fact.Kind, Trial: l.Proposal.Trial, Data: fact.Data}))
		}
		if l.Observation != nil {
			err = errors.Join(err, j.observe(*l.Observation))
		}
	}
	if log.Ended {
		err = errors.Join(err, j.end())
	}
	if err != nil {
		t.Fatalf("rewrite: %v", err)
	}
	return d.Bytes()
}
