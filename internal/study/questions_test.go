package study

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// ownQuestions are lines of the forms that sets have.
const ownQuestions = `{"question": "A crate holds 12 jars. How many jars are in 5 crates?", "answer": "5 crates hold 5*12=<<5*12=60>>60 jars.\n#### 60"}
{"question": "A boat costs $1,250 a week. What do 4 weeks cost?", "answer": "4*1250=$<<4*1250=5000>>5,000\n#### 5,000", "id": 7}

{"prompt": "Name the capital of France in one word.", "answer": "Paris"}
{"prompt": "What is 3 - 10?", "answer": -7}
`

func TestReadQuestions(t *testing.T) {
	set, err := readQuestions(strings.NewReader(ownQuestions))
	if err != nil || len(set) != 4 {
		t.Fatalf("%d questions: %v", len(set), err)
	}
	for i, want := range []string{"60", "5,000", "Paris", "-7"} {
		if set[i].Gold != want || set[i].Whole != (i > 1) {
			t.Errorf("question %d: %+v, want the answer %s", i+1, set[i], want)
		}
	}
	for text, want := range map[string]string{
		"":     "there is no question",
		"\n[]": "line 2: cannot unmarshal array",
		`{"question": "a", "prompt": "b", "answer": "c"}`: "a question and a prompt",
		`{"answer": "c"}`:                          "it has no question",
		`{"question": " ", "answer": "c"}`:         "it has no question",
		`{"question": "a"}`:                        "it has no answer",
		`{"question": "a", "answer": null}`:        "its answer is empty",
		`{"question": "a", "answer": true}`:        "it has no answer",
		`{"question": "a", "answer": "so\n#### "}`: "its answer is empty",
		`{"question": "a", "answer": "b"`:          "line 1: unexpected end",
	} {
		if _, err := readQuestions(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadQuestions("no-such-file"); err == nil || !strings.Contains(err.Error(), "no-such-file") {
		t.Errorf("no file: %v", err)
	}
}

func TestRight(t *testing.T) {
	for _, tt := range []struct {
		gold, text string
		want       bool
	}{
		{"18", "So 16 - 3 - 4 = 9, times 2 is 18.\n#### 18", true},
		{"18", "#### $18.00", true},
		{"18", "#### **18**.", true},
		{"18", "#### 18 dollars for 9 eggs", true},
		{"18", "#### 9\nNo: #### 18", true},
		{"18", "It is 18, and not 20.\n#### 20", false},
		{"18", "#### about", false},
		{"18", "She makes $18.", true},
		{"18", "She makes $18. That is 9 eggs.", false},
		{"18", `\boxed{18}`, true},
		{"18", "", false},
		{"18", "118", false},
		{"70,000", "#### 70000", true},
		{"70000", "#### $70,000.", true},
		{"70000", "a profit of 70,000", true},
		{"3", "1,2,3", true},
		{"1.5", "#### 1.50", true},
		{"0.5", "#### .5", true},
		{"-7", "3 - 10 = -7", true},
		{"-7", "#### \u22127", true},
		{"-7", "#### -$7", true},
		{"7", "10-7", true}, // a dash between numbers
		{"5", "steps 3-5", true},
		{"50%", "#### 50", true},
		{"Paris", "paris.", true},
		{"Paris", "The capital is\n#### **Paris**", true},
		{"Paris", "<think>Lyon? No.</think> Paris", true},
		{"Paris", "It is Paris", false},
		{"New York", "new  york", true},
		{"3 apples", "3 Apples", true}, // a text with a number in it is a text
		{"3 apples", "3", false},
	} {
		if got := (Question{Gold: tt.gold}).Right(tt.text); got != tt.want {
			t.Errorf("%q for %q: %v", tt.text, tt.gold, got)
		}
	}
}

func TestChosen(t *testing.T) {
	var set []Question
	for i := range 50 {
		set = append(set, Question{Text: strings.Repeat("x", i+1)})
	}
	a, b, c := drawQuestions(set, 20, 7), drawQuestions(set, 20, 7), drawQuestions(set, 20, 8)
	if len(a) != 20 || !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("%d questions; again the same: %v; another seed the same: %v", len(a), slices.Equal(a, b), slices.Equal(a, c))
	}
	if !slices.IsSortedFunc(a, func(x, y Question) int { return len(x.Text) - len(y.Text) }) {
		t.Error("not in the order of the file")
	}
	if got := drawQuestions(set, 60, 7); len(got) != 50 {
		t.Errorf("%d of 50", len(got))
	}
}

// TestRealQuestions: a published set reads whole, each of its solutions answers its
// question, and a wrong answer does not.
func TestRealQuestions(t *testing.T) {
	const path = "../../../shared/traces/gsm8k_test.jsonl"
	if _, err := os.Stat(path); err != nil {
		t.Skip("GSM8K's test set is not beside the repository: " + path)
	}
	set, err := ReadQuestions(path)
	if err != nil || len(set) != 1319 {
		t.Fatalf("%d questions: %v", len(set), err)
	}
	for _, q := range set {
		if gold, ok := numberOf(q.Gold); !ok || !q.Right("#### "+q.Gold) || math.IsNaN(gold) {
			t.Errorf("the answer %q is not right", q.Gold)
		}
		if q.Right("#### " + q.Wrong()) {
			t.Errorf("the wrong answer %q to %q is right", q.Wrong(), q.Gold)
		}
	}
}

// FuzzReadQuestions: what is read has a question that its own answer answers, and
// a wrong one that does not.
func FuzzReadQuestions(f *testing.F) {
	f.Add(ownQuestions)
	f.Add(`{"question":"a","answer":"#### \u22125"}`)
	f.Add(`{"question":"a","answer":1e400}`)
	f.Add(`{"question":"a","answer":"####\n####$"}`)
	f.Add(`{"prompt":"a","answer":"99999999999999999999"}`)
	f.Add(`{"prompt":"a","answer":"\"'."}`)
	f.Add(`{"prompt":"0","answer":".1"}`)
	f.Fuzz(func(t *testing.T, text string) {
		set, err := readQuestions(strings.NewReader(text))
		if err == nil && len(set) == 0 {
			t.Fatal("no question and no error")
		}
		for _, q := range set {
			if !q.Right(answerMark + " " + q.Gold) {
				t.Errorf("%q does not answer %+v", q.Gold, q)
			}
			if q.Right(answerMark + " " + q.Wrong()) {
				t.Errorf("%q answers %+v", q.Wrong(), q)
			}
		}
	})
}
