package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/tokenizer"
	"perflab/internal/workload"
)

// serverTokenizer is the Spec.Workload.Tokenizer that asks the server.
const serverTokenizer = "server"

// openTokenizer opens what a spec's lengths are measured by; nil for package
// token's approximation. client asks the server, where it is up.
func openTokenizer(s workload.Spec, client *openai.Client) (workload.Tokenizer, error) {
	switch {
	case s.Tokenizer == "":
		return nil, nil
	case s.Tokenizer != serverTokenizer:
		t, err := tokenizer.Open(s.Tokenizer)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--tokenizer: %w: nothing is downloaded: give a tokenizer.json of this machine or its directory, or %s", err, serverTokenizer)
		}
		if err != nil {
			return nil, fmt.Errorf("--tokenizer: %w", err)
		}
		return t, nil
	case client == nil:
		return nil, fmt.Errorf("--tokenizer %s needs a server that runs already: give a tokenizer.json", serverTokenizer)
	}
	return client.Tokenizer(), nil
}

// openWorkload opens a workload that no server is needed for.
func openWorkload(s workload.Spec) (*workload.Workload, error) {
	tok, err := openTokenizer(s, nil)
	if err != nil {
		return nil, err
	}
	return workload.OpenWith(s, tok)
}

// load opens the run's workload, and the tokenizer that it is measured by.
func (b Bench) load(ctx context.Context) (*workload.Workload, workload.Tokenizer, error) {
	var client *openai.Client
	if b.Spec.Workload.Tokenizer == serverTokenizer {
		var err error
		if client, err = openai.New(b.config(b.Spec.Targets[0])); err != nil {
			return nil, nil, err
		}
		defer client.Close()
		if b.Spec.ReadyTimeout > 0 {
			b.phase(PhaseWaiting)
			if err := client.Ready(ctx, b.Spec.ReadyTimeout); err != nil {
				return nil, nil, err
			}
		}
	}
	tok, err := openTokenizer(b.Spec.Workload, client)
	if err != nil {
		return nil, nil, err
	}
	w, err := workload.OpenWith(b.Spec.Workload, tok)
	return w, tok, err
}

// recount counts the output of a call whose server did not, by the run's
// tokenizer.
func recount(c *result.Call, tok workload.Tokenizer) {
	if tok == nil || !c.OK() || c.Text == "" || c.Usage != nil && c.Usage.Completion > 0 {
		return
	}
	if ids, err := tok.Encode(c.Text, false); err == nil {
		c.Recount = len(ids)
	}
}
