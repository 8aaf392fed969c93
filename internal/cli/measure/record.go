package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/engine"
	"perflab/internal/load"
	"perflab/internal/record"
)

const recordLong = `Record live traffic as a workload, so that a later run can send the same load.

Clients talk to this proxy instead of the engine. Every request goes on to the
engine as it is, and every answer comes back as it is, chunk by chunk. For each
request that asks for tokens (chat completions, completions, responses, Anthropic
messages, SGLang's generate) a line is written when it ends: when it came, how long
prompt and answer were, hashes of the prompt's blocks of tokens, its session, what
it asked for (model, max_tokens, temperature ...), its status and kind of failure.

No text is kept unless --text is given, and no header or key ever. Hashes are made
with a random salt that is kept nowhere: equal beginnings of prompts stay equal,
and nobody can find out by the file whether a text that he knows was sent.

The lengths are those that the engine says (usage). Where a stream has none, the
prompt is counted by the tokenizer or an estimate, and the answer by its events;
each such line says so, and so does the summary.

An interrupt (Ctrl-C) ends the recording: no new request is taken, those under way
may end within half a minute, and a summary with the command that replays it is
printed. What was written before a kill is whole.`

type recordFlags struct {
	listen, target, out, format, from string
	tokenizer, saltFile               string
	options                           record.Options
	duration                          time.Duration
	to                                *url.URL
}

// NewRecord is perflab record: a proxy that writes a workload of what passes.
func NewRecord(env console.Env) *cobra.Command {
	f := &recordFlags{}
	c := &cobra.Command{
		Use:   "record --target URL --out FILE",
		Short: "Record live traffic as a workload, by a proxy in front of the engine",
		Long:  recordLong,
		Example: `  perflab record --listen 127.0.0.1:9000 --target http://127.0.0.1:8000 --out traffic.jsonl
  perflab record --target http://127.0.0.1:8000 --out sessions.jsonl --format agents --session-header X-Session-ID
  perflab record --from traffic.jsonl --out sessions.jsonl --format agents`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return console.Usage(err)
			}
			if f.from != "" {
				return f.convert(env, f.from)
			}
			return f.run(c.Context(), env)
		},
	}
	f.add(c)
	return c
}

func (f *recordFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.listen, "listen", "127.0.0.1:9000", "address that clients talk to")
	fs.StringVar(&f.target, "target", "", "address of the engine, such as http://127.0.0.1:8000; without the /v1 that clients add")
	fs.StringVar(&f.out, "out", "", "file to write, which must not exist")
	fs.StringVar(&f.format, "format", formatTrace, "trace: a line a request, replayed at the recorded times; agents: a line a session, replayed request after request with the recorded idle times")
	fs.StringVar(&f.options.SessionHeader, "session-header", "", "request header that names a session, of which a hash is kept (default: a request whose prompt goes on from an earlier one's is of its session)")
	fs.StringVar(&f.tokenizer, "tokenizer", "", "what cuts prompts into blocks of tokens: a tokenizer.json, its directory, or a model in the Hugging Face cache (default: an estimate)")
	fs.IntVar(&f.options.Block, "block-size", record.DefaultBlock, "tokens of a block: prompts are alike by whole blocks in a replay")
	fs.StringVar(&f.saltFile, "salt-file", "", "file whose content salts the hashes, for several recordings to be joined: keep it secret (default: random, kept nowhere)")
	fs.BoolVar(&f.options.Text, "text", false, "keep the prompts, too")
	fs.DurationVar(&f.duration, "duration", 0, "end the recording after this time, such as 10m (default: at an interrupt)")
	fs.StringVar(&f.from, "from", "", "in place of live traffic take an earlier recording (of --format trace, or the .lines that a killed one left), and write --format agents of it")
}

// Formats of recordings.
const (
	formatTrace  = "trace"
	formatAgents = "agents"
)

// linesOf is the file that a recording of sessions grows in, until they are all there.
func linesOf(out string) string { return out + ".lines" }

// check reads the flags.
func (f *recordFlags) check() (err error) {
	switch {
	case f.out == "":
		return errors.New("--out is missing: name the file to write, such as traffic.jsonl")
	case f.format != formatTrace && f.format != formatAgents:
		return fmt.Errorf("--format %q is unknown: write trace or agents", f.format)
	case f.from != "" && f.target != "":
		return errors.New("--from and --target do not fit: a recording is made of live traffic or of an earlier recording")
	case f.from != "" && f.format != formatAgents:
		return errors.New("--from needs --format agents: a trace is what it is made of")
	case f.options.Block < 1:
		return fmt.Errorf("--block-size is %d: a block has at least one token", f.options.Block)
	case f.duration < 0:
		return fmt.Errorf("--duration is %v: it must be a time such as 10m", f.duration)
	}
	if _, err := os.Stat(f.out); err == nil {
		return fmt.Errorf("--out: %s exists: give another name, or remove it", f.out)
	}
	if f.from != "" {
		return nil
	}
	if _, err := os.Stat(linesOf(f.out)); err == nil && f.format == formatAgents {
		return fmt.Errorf("--out: a recording that was killed left %[1]s: make sessions of it by perflab record --from %[1]s --format agents --out %[2]s, or remove it", linesOf(f.out), f.out)
	}
	if f.target == "" {
		return errors.New("--target is missing: give the engine's address, such as http://127.0.0.1:8000")
	}
	if f.to, err = record.ParseTarget(f.target); err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	if tok, err := bench.OpenTokenizer(f.tokenizer); err != nil {
		return err
	} else if tok != nil {
		f.options.Tokenizer = tok
	}
	f.options.Salt, err = record.ReadSalt(f.saltFile)
	return err
}

// run records until it is told to stop.
func (f *recordFlags) run(ctx context.Context, env console.Env) error {
	if _, err := load.LiftFileLimit(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", f.listen, err)
	}
	defer l.Close()
	path := f.out
	if f.format == formatAgents {
		path = linesOf(f.out)
	}
	rec, err := record.Open(path, f.options)
	if err != nil {
		return err
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	fmt.Fprintf(env.Stderr, "recording: clients of http://%s reach %s; written to %s; Ctrl-C ends it\n", l.Addr(), f.to, path)
	begun := time.Now()
	live := console.StartLive(env, func() string { return rec.Live().Line(time.Since(begun)) }, nil)
	defer context.AfterFunc(ctx, func() {
		if n := rec.Live().Open.Load(); n > 0 {
			live.Say("no new request is taken; %d are under way and may end within %v", n, record.Grace)
		}
	})()
	p := &record.Proxy{Target: f.to, Recorder: rec}
	err = p.Serve(ctx, l)
	live.End()
	sum, closed := rec.Close()
	fmt.Fprintln(env.Stdout, strings.Join(sum.Lines(), "\n"))
	if err := errors.Join(err, closed); err != nil {
		return err
	}
	return f.conclude(env, sum, path)
}

// conclude says how to replay the recording, of which it makes sessions if they are wanted.
func (f *recordFlags) conclude(env console.Env, sum record.Summary, path string) error {
	switch {
	case sum.Requests == 0:
		fmt.Fprintf(env.Stderr, "nothing was recorded: %s is empty\n", path)
		return nil
	case f.format == formatAgents:
		if err := f.convert(env, path); err != nil {
			return err
		}
		return os.Remove(path)
	}
	f.replay(env, sum, 0)
	return nil
}

// convert makes sessions of a recording's lines.
func (f *recordFlags) convert(env console.Env, path string) error {
	s, err := record.Convert(path, f.out)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "%s of %s in %s\n", console.Plural(s.Sessions, "session"), console.Plural(s.Requests, "request"), f.out)
	f.replay(env, s.Summary, s.AtOnce)
	return nil
}

func (f *recordFlags) replay(env console.Env, sum record.Summary, atOnce int) {
	target := "http://HOST:PORT"
	if f.to != nil {
		target = f.to.String()
	}
	fmt.Fprintln(env.Stdout, "Replay:         "+engine.Join(append([]string{"perflab"}, sum.Replay(target, f.out, atOnce)...)))
}
