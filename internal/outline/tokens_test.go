package outline

import (
	"errors"
	"slices"
	"testing"

	"perflab/internal/token"
	"perflab/internal/workload"
)

// letters has a token for each byte, and none for a question mark.
type letters struct{}

func (letters) Encode(text string, _ bool) ([]int32, error) {
	var out []int32
	for _, b := range []byte(text) {
		if b == '?' {
			return nil, errors.New("no token for ?")
		}
		out = append(out, int32(b))
	}
	return out, nil
}
func (letters) Decode([]int32) (string, error) { return "", nil }
func (letters) Ordinary() []int32              { return nil }
func (letters) Name() string                   { return "letters" }

var _ workload.Tokenizer = letters{}

// TestTokens: a prediction reads all that a request sends, by the
// workload's own tokenizer.
func TestTokens(t *testing.T) {
	r := workload.Request{System: "ab", History: []workload.Message{{Role: "user", Content: "c"}, {Role: "assistant", Content: "d"}}, Prompt: "ef"}
	got, err := Tokens(r, letters{})
	if want := []uint32{'a', 'b', 'c', 'd', 'e', 'f'}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	got, err = Tokens(workload.Request{Prompt: "how are you"}, nil)
	if want := token.Append(nil, "how are you"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	r.IDs = []int32{7, 8}
	if got, err = Tokens(r, letters{}); err != nil || !slices.Equal(got, []uint32{7, 8}) {
		t.Errorf("of ids: %v, %v", got, err)
	}
	if _, err = Tokens(workload.Request{Prompt: "eh?"}, letters{}); err == nil {
		t.Error("what has no token is no error")
	}

	w, err := workload.Open(workload.Spec{NumPrompts: 3, RandomInputLen: 4, RandomOutputLen: 2}.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	p := New(w, failing{})
	for range p.Jobs() {
		t.Error("a job of a prompt that cannot be read")
	}
	if p.Err() == nil {
		t.Error("no error of a prompt that cannot be read")
	}
}

// failing has no tokens at all.
type failing struct{ letters }

func (failing) Encode(string, bool) ([]int32, error) { return nil, errors.New("nothing") }
