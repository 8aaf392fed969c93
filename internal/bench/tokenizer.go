package bench

import (
	"context"
	"errors"
	"io/fs"

	"perflab/internal/field"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/tokenizer"
	"perflab/internal/workload"
)

// openTokenizer opens what a spec's lengths are measured by, where no server
// is needed; nil for package token's approximation.
func openTokenizer(s workload.Spec) (workload.Tokenizer, error) {
	switch s.Tokenizer {
	case "":
		return nil, nil
	case workload.ServerTokenizer:
		return nil, field.Errorf("tokenizer", "%s needs a server that runs already: give a tokenizer.json", s.Tokenizer)
	}
	t, err := tokenizer.Open(s.Tokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, field.Errorf("tokenizer", "cannot be opened: %v: nothing is downloaded: give a tokenizer.json of this machine or its directory, or %s", err, workload.ServerTokenizer)
	}
	if err != nil {
		return nil, field.Errorf("tokenizer", "cannot be opened: %v", err)
	}
	return t, nil
}

// OpenWorkload opens a workload that no server is needed for, with the
// tokenizer by which its lengths are measured; nil for package token's
// approximation.
func OpenWorkload(s workload.Spec) (*workload.Workload, workload.Tokenizer, error) {
	tok, err := openTokenizer(s)
	if err != nil {
		return nil, nil, err
	}
	w, err := workload.OpenWith(s, tok)
	return w, tok, err
}

// tokenizer opens what the run's lengths are measured by, for as long as the
// run lasts, and waits for the server where that is it.
func (b Runner) tokenizer(ctx context.Context) (tok workload.Tokenizer, close func(), err error) {
	if b.Spec.Workload.Tokenizer != workload.ServerTokenizer {
		tok, err = openTokenizer(b.Spec.Workload)
		return tok, func() {}, err
	}
	client, err := openai.New(b.config(b.Spec.Targets[0]))
	if err != nil {
		return nil, nil, err
	}
	if b.Spec.ReadyTimeout > 0 {
		b.phase(PhaseWaiting)
		if err := client.Ready(ctx, b.Spec.ReadyTimeout); err != nil {
			client.Close()
			return nil, nil, err
		}
	}
	return client.Tokenizer(), client.Close, nil
}

// counter counts the output of calls whose server did not, by the run's
// tokenizer, on their way to keep. Where the server itself would have to do
// it, they wait for the end of the load.
type counter struct {
	tok     workload.Tokenizer
	late    bool
	keep    func(result.Call)
	waiting []result.Call
}

func (k *counter) take(c result.Call) {
	switch {
	case k.tok == nil || !c.OK() || c.Text == "" || c.Usage != nil && c.Usage.Completion > 0:
	case k.late:
		k.waiting = append(k.waiting, c)
		return
	default:
		recount(&c, k.tok)
	}
	k.keep(c)
}

func (k *counter) finish() {
	for i := range k.waiting {
		recount(&k.waiting[i], k.tok)
		k.keep(k.waiting[i])
	}
}

func recount(c *result.Call, tok workload.Tokenizer) {
	if ids, err := tok.Encode(c.Text, false); err == nil {
		c.Recount = len(ids)
	}
}
