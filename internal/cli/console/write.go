package console

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/term"

	"perflab/internal/durable"
)

// WriteFiles writes the files that were asked for and names them.
func WriteFiles(env Env, html string, page func(io.Writer) error, parquet string, rows func(io.Writer) error) error {
	for _, x := range []struct {
		path, what string
		write      func(io.Writer) error
		file       func(string, func(io.Writer) error) error
	}{{html, "report", page, env.WriteText}, {parquet, "calls", rows, WriteReport}} {
		if x.path == "" {
			continue
		}
		if err := x.file(x.path, x.write); err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "%s: %s\n", x.what, x.path)
	}
	return nil
}

// WriteText is WriteReport for text: no secret that came in by environment or
// flags is in it.
func (e Env) WriteText(path string, write func(io.Writer) error) error {
	return WriteReport(path, func(w io.Writer) error {
		var b strings.Builder
		if err := write(&b); err != nil {
			return err
		}
		_, err := io.WriteString(w, e.Secrets.Mask(b.String()))
		return err
	})
}

// WriteReport writes a file as a whole: one that cannot be finished is not
// left behind under its name.
func WriteReport(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := durable.Replace(path, write); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// IsTerminal says whether what is written goes to a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Plural writes "1 run", "2 runs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// WriteJSON writes a value indented, as users read it.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Digits writes requests per second.
func Digits(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Grouped writes thousands apart: 1,024,000.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
