// Package export writes the spans of runs where a user wants them: into a file, a line for each
// batch as a collector's file exporter does, or to a collector by OTLP over HTTP.
//
//	target, err := export.Parse("http://127.0.0.1:4318")
//	e, err := target.Begin(os.Getenv)
//	n, err := e.Add(ctx, run, calls)
//
// Invariants: nothing is written while a load goes on; a collector that is away costs the spans and
// nothing else; the values of headers are in no error.
//
// Deliberately absent: a queue and repeats, since what was not sent is in the run directory.
package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"perflab/internal/input"
	"perflab/internal/otlp"
	"perflab/internal/redact"
	"perflab/internal/result"
	"perflab/internal/trace"
)

// The environment variables by which OpenTelemetry's own exporters get headers.
const (
	HeadersVariable       = "OTEL_EXPORTER_OTLP_HEADERS"
	TracesHeadersVariable = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
)

// Target is where spans go.
type Target struct {
	File string   // "": to a collector
	url  *url.URL // nil: into a file
}

// Parse reads a target: what begins with a scheme is a collector, all else a file. A collector's
// address without a path gets the usual one.
func Parse(target string) (Target, error) {
	scheme, _, isURL := strings.Cut(target, "://")
	if !isURL {
		if info, err := os.Stat(target); err == nil && info.IsDir() {
			return Target{}, fmt.Errorf("%s is a directory: give the name of a file", target)
		}
		return Target{File: target}, nil
	}
	u, err := url.Parse(target)
	switch {
	case scheme != "http" && scheme != "https":
		return Target{}, fmt.Errorf("the scheme %.20q is not spoken: give a file, or a collector's OTLP/HTTP address, such as http://127.0.0.1:4318", scheme)
	case err != nil || u.Host == "":
		return Target{}, errors.New("this is no address: give a collector's OTLP/HTTP address, such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return Target{}, fmt.Errorf("the address of %s holds a user name, a query or a fragment: give what the collector asks for in the environment, as %s=NAME=VALUE", u.Host, HeadersVariable)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return Target{url: u}, nil
}

// String is the target for a reader.
func (t Target) String() string {
	if t.url == nil {
		return t.File
	}
	return t.url.String()
}

// Exporter writes the spans of runs to one target, one run after the other.
type Exporter struct {
	target  Target
	header  http.Header
	secrets redact.Values
	client  *http.Client
	begun   bool // the file is there
}

// Begin reads the headers for a collector from the environment, and makes a file's directory.
func (t Target) Begin(getenv func(string) string) (*Exporter, error) {
	e := &Exporter{target: t, header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"perflab"}}}
	if t.url == nil {
		if err := os.MkdirAll(filepath.Dir(t.File), 0o755); err != nil {
			return nil, fmt.Errorf("make the directory of the spans: %w", err)
		}
		return e, nil
	}
	for _, name := range []string{HeadersVariable, TracesHeadersVariable} {
		if err := e.addHeaders(name, getenv(name)); err != nil {
			return nil, err
		}
	}
	e.client = &http.Client{
		Timeout:   10 * time.Second, // of one batch, as in OpenTelemetry's own exporters
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment},
		// A header that a collector asks for is not for whom it names instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e, nil
}

// addHeaders takes NAME=VALUE pairs by commas, whose values are escaped as in addresses.
func (e *Exporter) addHeaders(variable, text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s is not of the form NAME=VALUE,NAME=VALUE", variable)
		}
		e.header.Set(strings.TrimSpace(name), value)
		e.secrets.AddHeader(value, "[header of "+variable+"]")
	}
	return nil
}

// atOnce is how many calls go into one line or one message: with their spans some hundred KiB,
// where collectors take 20 MiB.
const atOnce = 64

// Add writes the spans of a run's calls and returns how many calls that were. It ends at the first
// batch that cannot be written.
func (e *Exporter) Add(ctx context.Context, run trace.Run, calls iter.Seq2[result.Call, error]) (n int, err error) {
	write, end, err := e.open(ctx)
	if err != nil {
		return 0, err
	}
	n, err = Batches(run, calls, write)
	return n, cmp.Or(err, end())
}

// Batches gives the spans of calls to write, batch by batch.
func Batches(run trace.Run, calls iter.Seq2[result.Call, error], write func(batch []byte) error) (n int, err error) {
	var spans []otlp.Span
	held := 0
	flush := func() error {
		if held == 0 {
			return nil
		}
		if err := write(otlp.Append(nil, run.Source(), spans)); err != nil {
			return err
		}
		n, held, spans = n+held, 0, spans[:0]
		return nil
	}
	for c, fault := range calls {
		if fault != nil {
			return n, cmp.Or(flush(), fault)
		}
		spans = append(spans, run.Spans(&c)...)
		if held++; held == atOnce {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	return n, flush()
}

// open is how a batch is written.
func (e *Exporter) open(ctx context.Context) (write func([]byte) error, end func() error, err error) {
	if e.target.url != nil {
		return func(b []byte) error { return e.post(ctx, b) }, func() error { return nil }, nil
	}
	how := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if e.begun { // of a series each run is added
		how = os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(e.target.File, how, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("write the spans: %w", err)
	}
	e.begun = true
	write = func(b []byte) error {
		_, err := f.Write(append(b, '\n'))
		return err
	}
	return write, f.Close, nil
}

// post sends one batch.
func (e *Exporter) post(ctx context.Context, batch []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.target.url.String(), bytes.NewReader(batch))
	if err != nil {
		return fmt.Errorf("send spans to %s: %w", e.target, err)
	}
	req.Header = e.header
	resp, err := e.client.Do(req)
	if err != nil {
		return e.reason(err)
	}
	defer resp.Body.Close()
	body, err := input.All(resp.Body, "the answer", 1<<20)
	if err != nil && !errors.Is(err, io.EOF) {
		return e.reason(err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send spans to %s: it answered %s%s", e.target, resp.Status, e.said(string(body)))
	}
	return e.rejected(body)
}

// reason is an error of the network without the address, which http puts before it.
func (e *Exporter) reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("send spans to %s: %w", e.target, err)
}

// said is the beginning of what a collector answered, for an error.
func (e *Exporter) said(text string) string {
	text = redact.Plain(e.secrets.Text(text))
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return ""
	}
	const most = 200
	return ": " + strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// rejected is the error of a collector that took a batch and not all spans of it. An answer that
// is not of the protocol's JSON says nothing of that.
func (e *Exporter) rejected(body []byte) error {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.Number
			ErrorMessage  string
		}
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	if n := string(answer.PartialSuccess.RejectedSpans); n != "" && n != "0" {
		return fmt.Errorf("send spans to %s: it did not take %s spans of a batch%s", e.target, n, e.said(answer.PartialSuccess.ErrorMessage))
	}
	return nil
}
