package translate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what is compared with")

// commands are those of testdata/commands.txt.
func commands(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "commands.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n\n")[1:]
}

// golden compares a text with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; write it with -update):\n%s", path, d)
	}
}

// TestCommands holds what becomes of the commands that documents show.
func TestCommands(t *testing.T) {
	var b strings.Builder
	for _, text := range commands(t) {
		fmt.Fprintf(&b, "$ %s\n", text)
		x, err := Read(text)
		if err != nil {
			fmt.Fprintf(&b, "refused:\n  %s\n\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
			continue
		}
		fmt.Fprintf(&b, "%s\n", x)
		for _, n := range x.Notes {
			fmt.Fprintf(&b, "  %s: %s\n", n.Flag, n.Text)
		}
		b.WriteByte('\n')
	}
	golden(t, filepath.Join("testdata", "translations.txt"), b.String())
}

// TestFlags holds that every flag of a client has a row: testdata/flags has their
// names, out of the parsers of the versions that the tables name.
func TestFlags(t *testing.T) {
	for _, c := range clients() {
		b, err := os.ReadFile(filepath.Join("testdata", "flags", c.name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for flag := range strings.FieldsSeq(string(b)) {
			known := false
			for _, r := range c.rows {
				for name := range strings.SplitSeq(r.flags, "|") {
					known = known || name == flag || strings.HasPrefix(name, flag+" ")
				}
			}
			if !known {
				t.Errorf("%s: %s has no row", c.name, flag)
			}
		}
	}
}

// TestRows holds what the tables themselves promise.
func TestRows(t *testing.T) {
	for _, c := range clients() {
		seen := map[string]bool{}
		for _, r := range c.rows {
			if r.kind != carried && r.says == "" {
				t.Errorf("%s: %s is not carried over and does not say why", c.name, r.flags)
			}
			if r.kind == carried && r.to == "" {
				t.Errorf("%s: %s is carried over to nothing", c.name, r.flags)
			}
			for name := range strings.SplitSeq(r.flags, "|") {
				if seen[name] && c.name != "genai-perf" { // whose own rows come before aiperf's
					t.Errorf("%s: %s has two rows", c.name, name)
				}
				seen[name] = true
			}
		}
	}
}

// TestSecrets: no secret of a command comes out, in the command, a note or an error.
func TestSecrets(t *testing.T) {
	const secret = "sk-veryverysecret0123456789"
	refused := 0
	for _, text := range []string{
		"guidellm run --backend kind=openai_http,api_key=SECRET,target=http://localhost:8000 --profile kind=synchronous --data kind=synthetic_text,prompt_tokens=1,output_tokens=1",
		`guidellm benchmark --target http://localhost:8000 --profile synchronous --backend-kwargs '{"api_key": "SECRET"}' --data prompt_tokens=1,output_tokens=1`,
		"guidellm benchmark --target http://user:SECRET@localhost:8000 --profile synchronous --data prompt_tokens=1,output_tokens=1",
		"aiperf profile --model m --isl 1 --osl 1 --api-key SECRET",
		"aiperf profile --model m --isl 1 --osl 1 --api-key=SECRET",
		"aiperf profile --model m --isl 1 --osl 1 -H 'Authorization: Bearer SECRET' -H 'X-Api-Key: SECRET'",
		"aiperf profile --model m --isl 1 --osl 1 --extra-inputs api_key:SECRET",
		"curl -H 'Authorization: Bearer SECRET' http://localhost",
	} {
		x, err := Read(strings.ReplaceAll(text, "SECRET", secret))
		said := fmt.Sprint(x, x.Args(), x.Notes, err)
		if strings.Contains(said, secret) {
			t.Errorf("%s\nshows the secret: %s", text, said)
		}
		if err != nil {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d of the commands are refused", refused)
	}
}
