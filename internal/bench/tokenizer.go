package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"perflab/internal/field"
	"perflab/internal/hub"
	"perflab/internal/openai"
	"perflab/internal/tokenizer"
	"perflab/internal/workload"
)

// OpenWorkload opens a workload that no server is needed for, with the
// tokenizer by which its lengths are measured; nil for package token's
// approximation.
func OpenWorkload(s workload.Spec) (*workload.Workload, workload.Tokenizer, error) {
	s, _, tok, err := openTokenizer(s)
	if err != nil {
		return nil, nil, err
	}
	w, err := workload.OpenWith(s, tok)
	return w, tok, err
}

// openTokenizer opens what a spec's lengths are measured by, where no server
// is needed; nil for package token's approximation. The spec that comes back
// names a file in place of a model; from says where that was found.
func openTokenizer(s workload.Spec) (_ workload.Spec, from string, tok workload.Tokenizer, err error) {
	switch {
	case s.Tokenizer == "":
		return s, "", nil, nil
	case s.Tokenizer == workload.EstimateTokenizer:
		s.Tokenizer = ""
		return s, estimate("as was asked"), nil, nil
	case s.Tokenizer == workload.ServerTokenizer:
		return s, "", nil, field.Errorf("tokenizer", "%s needs a server that runs already: give a tokenizer.json", s.Tokenizer)
	case namesModel(s.Tokenizer):
		path, found, err := CachedTokenizer(s.Tokenizer)
		if err != nil {
			return s, "", nil, absentTokenizer(err)
		}
		s.Tokenizer, from = path, found
	}
	t, err := tokenizer.Open(s.Tokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		return s, "", nil, field.Errorf("tokenizer", "cannot be opened: %v: nothing is downloaded: give a tokenizer.json of this machine or its directory, the name of a model that is in the Hugging Face cache, or %s", err, workload.ServerTokenizer)
	}
	if err != nil {
		return s, "", nil, field.Errorf("tokenizer", "cannot be opened: %v", err)
	}
	return s, from, t, nil
}

// namesModel reports whether a value of Spec.Tokenizer can only be the name of a
// model: there is no such file, and it does not look like the path of one that a
// slip of the finger has missed.
func namesModel(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist) && hub.IsName(name) && !strings.HasSuffix(name, ".json")
}

// absentTokenizer is the error of a model whose tokenizer is not at hand.
func absentTokenizer(err error) error {
	absent, ok := errors.AsType[*hub.AbsentError](err)
	if !ok {
		return field.Errorf("tokenizer", "%v", err)
	}
	return field.Errorf("tokenizer", "%s is no file of this machine, and %v: get it by %q, or give the path of a tokenizer.json", absent.Repo, err, absent.Download())
}

// CachedTokenizer finds the tokenizer of a model in the Hugging Face cache, or in the
// model's own directory where it is named by that, and says where it is.
func CachedTokenizer(model string) (path, from string, err error) {
	if path = filepath.Join(model, "tokenizer.json"); filepath.IsAbs(path) {
		if _, err := os.Stat(path); err == nil {
			return path, "of the model: " + path, nil
		}
	}
	path, at, err := hub.ModelFile(model, "tokenizer.json")
	if err != nil {
		return "", "", err
	}
	return path, fmt.Sprintf("of %s in the Hugging Face cache: %s", at.Repo, path), nil
}

// HasTokenizer reports whether a tokenizer of that path, or of the model of that name, is on this
// machine.
func HasTokenizer(name string) bool {
	if !namesModel(name) {
		return true // what is wrong with a path is said where it is opened
	}
	_, _, err := CachedTokenizer(name)
	return err == nil
}

// estimate says that lengths are estimates, and why.
func estimate(why string) string {
	return "an estimate, " + why + ": in all within 3 % of GPT-4's tokens for English and code, up to half off for some languages"
}

// ChooseTokenizer finds by what the lengths of the runs of a spec are measured, and
// writes it into the spec, so that they measure alike and their headers say it: the
// file or the server that the spec names; of a model that it names, its tokenizer in
// the Hugging Face cache, or else the server's; where it names none, that of the model
// under test in the cache, or an estimate. A simulated server counts by the estimate itself.
func (b *Runner) ChooseTokenizer(ctx context.Context) error {
	w := &b.Spec.Workload
	switch {
	case w.Tokenizer == "":
		return b.ofModel(ctx)
	case w.Tokenizer == workload.ServerTokenizer || w.Tokenizer == workload.EstimateTokenizer || !namesModel(w.Tokenizer):
		return nil // see openTokenizer
	}
	path, from, err := CachedTokenizer(w.Tokenizer)
	if err == nil {
		w.Tokenizer, b.TokenizerFrom = path, from
		return nil
	}
	if _, absent := errors.AsType[*hub.AbsentError](err); !absent || w.RandomRNG != "" || w.RandomIDs { // a server does not tell its vocabulary
		return absentTokenizer(err)
	}
	return b.askServer(ctx, err)
}

// askServer has the server measure what a tokenizer that is not at hand should have, if
// the server can.
func (b *Runner) askServer(ctx context.Context, absent error) error {
	client, err := b.await(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Tokenize(ctx, "a", false)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		b.Spec.Workload.Tokenizer, b.TokenizerFrom = workload.ServerTokenizer, fmt.Sprintf("asked because %v", absent)
		return nil
	}
	b.Spec.Workload.Tokenizer, b.TokenizerFrom = "", estimate(fmt.Sprintf("because %v, and %v", absent, err))
	b.instead = "prompt lengths are " + b.TokenizerFrom
	return nil
}

// ofModel takes the tokenizer of the model under test if the cache has it and it will
// do. Nobody asked for it, so that nothing about it is an error.
func (b *Runner) ofModel(ctx context.Context) error {
	path, from := SuitedTokenizer(cmp.Or(b.Repo, b.Spec.Model), b.Spec.Workload)
	if path == "" {
		b.TokenizerFrom = from
		return nil
	}
	client, err := b.await(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if info, _ := client.Probe(ctx); info.Simulated { // its error is the run's to tell
		path, from = "", estimate("as the simulated server counts")
	}
	b.Spec.Workload.Tokenizer, b.TokenizerFrom = path, from
	return nil
}

// await makes a client of the first target and waits for the server as the spec says. What
// is wrong with the workload is said first.
func (b *Runner) await(ctx context.Context) (*openai.Client, error) {
	client, err := openai.New(b.config(b.Spec.Targets[0]))
	if err != nil || b.Spec.ReadyTimeout == 0 {
		return client, err
	}
	s := b.Spec.Workload
	s.Tokenizer = ""
	if _, err = workload.Open(s); err == nil {
		b.phase(PhaseWaiting)
		err = client.Ready(ctx, b.Spec.ReadyTimeout)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// MeasuredByModel is the spec with the tokenizer of a model, where it names none itself and
// the model's is at hand.
func MeasuredByModel(s workload.Spec, model string) workload.Spec {
	if s.Tokenizer == "" && model != "" {
		s.Tokenizer, _ = SuitedTokenizer(model, s)
	}
	return s
}

// SuitedTokenizer finds the tokenizer of a model for a workload that names none, and
// says where it is; "" where the Hugging Face cache has none that will do, and why
// lengths are then estimates.
func SuitedTokenizer(model string, s workload.Spec) (path, from string) {
	path, from, err := CachedTokenizer(model)
	if err != nil {
		return "", estimate(fmt.Sprintf("because %v", err))
	}
	if err := suits(s, path); err != nil {
		return "", estimate(fmt.Sprintf("because the tokenizer %s will not do: %v", from, err))
	}
	return path, from
}

// TokenizerName is the name of a tokenizer's file as headers have it.
func TokenizerName(path string) (string, error) {
	t, err := tokenizer.Open(path)
	if err != nil {
		return "", err
	}
	return t.Name(), nil
}

// suits says why a tokenizer cannot measure a workload.
func suits(s workload.Spec, path string) error {
	tok, err := tokenizer.Open(path)
	if err != nil || !s.MadeUp() {
		return err
	}
	_, err = workload.OpenWith(workload.Spec{NumPrompts: 1, RandomInputLen: 1, Tokenizer: path}, tok)
	return err
}

// tokenizer opens what the run's lengths are measured by, for as long as the
// run lasts, and waits for the server where that is it. The spec then names it.
func (b *Runner) tokenizer(ctx context.Context) (tok workload.Tokenizer, close func(), err error) {
	if b.Spec.Workload.Tokenizer != workload.ServerTokenizer {
		s, from, tok, err := openTokenizer(b.Spec.Workload)
		if b.Spec.Workload = s; from != "" {
			b.TokenizerFrom = from
		}
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

// CountedBy says in a few words by what the prompts' lengths were counted, and how far an
// estimate was off: (estimated; +4.1 % by the server's count).
func (o *Outcome) CountedBy() string {
	h := o.Header
	switch {
	case h.Tokenizer != "":
		return "(by " + h.CountedBy() + ")"
	case h.Imported != nil:
		return ""
	}
	planned, counted := 0, 0
	for i := range o.Calls {
		if c := &o.Calls[i]; c.OK() && c.Usage != nil && c.Usage.Prompt > 0 && c.WantIn > 0 {
			planned, counted = planned+c.WantIn, counted+c.Usage.Prompt
		}
	}
	if planned == 0 {
		return "(estimated)"
	}
	return fmt.Sprintf("(estimated; %+.1f %% by the server's count)", 100*(float64(counted)/float64(planned)-1))
}

// OpenTokenizer opens a tokenizer.json, the one of a directory, or that of a model in the Hugging Face
// cache; nil, for package token's approximation, where none is named or an estimate is asked for.
func OpenTokenizer(name string) (workload.Tokenizer, error) {
	_, _, tok, err := openTokenizer(workload.Spec{Tokenizer: name})
	return tok, err
}
