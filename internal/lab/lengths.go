package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"perflab/internal/bench"
	"perflab/internal/rundir"
	"perflab/internal/study"
)

// lengthsFile is by what the lengths of workloads are measured that name no tokenizer. That
// is found as a study begins, and kept: an engine that it starts may bring a tokenizer into
// the cache, and all trials, also of a study that goes on, must send the same.
const lengthsFile = "lengths.json"

// keptLengths is the content of lengthsFile.
type keptLengths struct {
	Schema     string                     `json:"schema"`
	Tokenizers map[string]study.Tokenizer `json:"tokenizers"` // by workload
}

const lengthsSchema = "perflab.lengths/1"

// chooseTokenizers gives the study the tokenizers of workloads that name none: a new study
// those of its model that the Hugging Face cache has, one that goes on those that it began
// with. Simulated engines count by the estimate themselves.
func (l *session) chooseTokenizers(ctx context.Context) error {
	if l.Resume {
		var kept keptLengths
		err := rundir.ReadJSON(filepath.Join(l.Dir, lengthsFile), &kept)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it found none
		}
		if err != nil {
			return fmt.Errorf("%w: without it the study cannot send what it sent", err)
		}
		if err := sameTokenizers(kept); err != nil {
			return fmt.Errorf("resume %s: %w", l.Dir, err)
		}
		l.MeasureBy(kept.Tokenizers)
		return nil
	}
	if l.Runtime.Modelled() {
		return nil
	}
	found := map[string]study.Tokenizer{}
	for _, w := range l.Workloads {
		t, err := l.tokenizerOf(ctx, w)
		if err != nil {
			return err
		}
		if t.Path != "" {
			found[w.Name] = t
		}
	}
	if len(found) == 0 {
		return nil
	}
	b, err := json.MarshalIndent(keptLengths{lengthsSchema, found}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", lengthsFile, err)
	}
	l.lengths = append(b, '\n')
	l.MeasureBy(found)
	return nil
}

// tokenizerOf finds the tokenizer of a workload that names none; the zero one where lengths
// are estimates.
func (l *session) tokenizerOf(ctx context.Context, w study.Workload) (study.Tokenizer, error) {
	if w.Tokenizer != "" {
		return study.Tokenizer{}, nil
	}
	path, from := bench.SuitedTokenizer(l.Model, w.Spec)
	if l.Runtime.Kind == study.Existing && path != "" { // it may be a simulated one
		targets, leave, err := l.existing(ctx)
		if err != nil {
			return study.Tokenizer{}, err
		}
		defer leave()
		b := bench.Runner{APIKey: l.APIKey, Spec: bench.Spec{Targets: targets, Backend: l.Bench.Backend, Model: l.Model, Workload: w.Spec}}
		if err := b.ChooseTokenizer(ctx); err != nil {
			return study.Tokenizer{}, err
		}
		path, from = b.Spec.Workload.Tokenizer, b.TokenizerFrom
	}
	if path == "" {
		return study.Tokenizer{}, nil
	}
	name, err := bench.TokenizerName(path)
	return study.Tokenizer{Path: path, Name: name, From: from}, err
}

// existing are the addresses of what is up already, until leave.
func (l *session) existing(ctx context.Context) (targets []string, leave func(), err error) {
	s, ok := l.ServiceTarget()
	if !ok {
		return l.Runtime.URLs, func() {}, nil
	}
	found, err := FindService(ctx, &s)
	if err != nil {
		return nil, nil, err
	}
	return found.Targets(), func() { _ = found.Stop(ctx) }, nil // it never fails
}

// sameTokenizers checks that the files are what they were as the study began.
func sameTokenizers(kept keptLengths) error {
	for workload, t := range kept.Tokenizers {
		switch name, err := bench.TokenizerName(t.Path); {
		case err != nil:
			return fmt.Errorf("the prompts of workload %s were measured by %s: put it back to go on: %w", workload, t.Path, err)
		case name != t.Name:
			return fmt.Errorf("the prompts of workload %s were measured by %s, which was %s and is %s now: put it back to go on", workload, t.Path, t.Name, name)
		}
	}
	return nil
}
