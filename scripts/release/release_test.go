package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var at = time.Date(2026, 11, 26, 9, 45, 58, 0, time.UTC)

// documents of this source, read once.
func documents(t *testing.T) []file {
	t.Helper()
	r := &release{source: "../..", version: "v0.3.0", at: at}
	files, err := r.documents()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDocuments: each command has a manual page and each shell its completion, the same each time.
func TestDocuments(t *testing.T) {
	first, second := documents(t), documents(t)
	if len(first) != len(second) {
		t.Fatalf("%d files, then %d", len(first), len(second))
	}
	names := map[string]string{}
	for i, f := range first {
		if f.name != second[i].name || !bytes.Equal(f.content, second[i].content) {
			t.Errorf("%s is not the same twice", f.name)
		}
		names[f.name] = string(f.content)
	}
	for name, has := range map[string]string{
		"LICENSE": "Apache", "README.md": "# perflab", "man/perflab.1": "perflab-bench(1)", "man/perflab-bench.1": "request-rate", "man/perflab-version.1": "perflab v0.3.0", "man/perflab-selfcheck.1": "\n  arrival error   an event",
		"systemd/perflab.service": "KillMode=process", "systemd/perflab.sysusers": "u perflab", "completions/perflab.bash": "complete", "completions/_perflab": "#compdef perflab", "completions/perflab.fish": "complete -c perflab", "completions/perflab.ps1": "Register-ArgumentCompleter",
	} {
		if !strings.Contains(names[name], has) {
			t.Errorf("%s has no %q", name, has)
		}
	}
	if _, hidden := names["man/perflab-truth-server.1"]; hidden {
		t.Error("a hidden command has a page")
	}
}

func TestVersions(t *testing.T) {
	for described, want := range map[string][2]string{
		"v0.3.0":            {"v0.3.0", "0.3.0"},
		"v0.3.0-4-g9d72427": {"v0.3.0-4-g9d72427", "0.3.0+4.g9d72427"},
		"9d72427":           {"v0.0.0-g9d72427", "0.0.0+g9d72427"},
		"v0.3.0-dirty":      {"v0.3.0-dirty", "0.3.0+dirty"},
	} {
		version := versionOf(described)
		if got := [2]string{version, debianVersion(version)}; got != want {
			t.Errorf("%s: %q, want %q", described, got, want)
		}
	}
}

var few = []file{{"perflab", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("l")}, {"man/perflab.1", 0o644, []byte("m")}, {"completions/perflab.bash", 0o644, []byte("b")}, {"completions/perflab.ps1", 0o644, []byte("p")}, {"systemd/perflab.service", 0o644, []byte("s")}, {"systemd/perflab.sysusers", 0o644, []byte("u")}}

func TestTarball(t *testing.T) {
	var b, again bytes.Buffer
	if err := tarball(&b, "perflab_0.3.0/", few, at); err != nil {
		t.Fatal(err)
	}
	if err := tarball(&again, "perflab_0.3.0/", few, at); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("not the same twice: %v", err)
	}
	gz, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s is of %v, user %d %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
		if h.Name == "perflab_0.3.0/perflab" && h.Mode != 0o755 {
			t.Errorf("the program has mode %o", h.Mode)
		}
		names = append(names, h.Name)
	}
	want := []string{"perflab_0.3.0/", "perflab_0.3.0/perflab", "perflab_0.3.0/LICENSE", "perflab_0.3.0/man/", "perflab_0.3.0/man/perflab.1", "perflab_0.3.0/completions/", "perflab_0.3.0/completions/perflab.bash", "perflab_0.3.0/completions/perflab.ps1", "perflab_0.3.0/systemd/", "perflab_0.3.0/systemd/perflab.service", "perflab_0.3.0/systemd/perflab.sysusers"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestZip(t *testing.T) {
	var b bytes.Buffer
	if err := zipped(&b, "d", few, at); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := fs.ReadFile(r, "d/perflab")
	if err != nil || string(got) != "program" || len(r.File) != len(few) {
		t.Errorf("%q, %v, %d files", got, err, len(r.File))
	}
}

// TestDebian: dpkg-deb, where there is one, reads the package.
func TestDebian(t *testing.T) {
	var b bytes.Buffer
	if err := debian(&b, "v0.3.0-4-gabc", "amd64", few, at); err != nil {
		t.Fatal(err)
	}
	if b.Len()%2 != 0 || !strings.HasPrefix(b.String(), "!<arch>\ndebian-binary   1795686358  0     0     100644  4         `\n2.0\n") {
		t.Errorf("the archive begins with %q", b.String()[:80])
	}
	path := filepath.Join(t.TempDir(), "perflab.deb")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb to read the package by")
	}
	for want, args := range map[string][]string{
		"Version: 0.3.0+4.gabc\n":                           {"--info", path},
		"./usr/bin/perflab\n":                               {"--contents", path},
		"./usr/share/man/man1/perflab.1.gz\n":               {"--contents", path},
		"./usr/share/bash-completion/completions/perflab\n": {"--contents", path},
		"./usr/share/doc/perflab/copyright\n":               {"--contents", path},
		"./usr/lib/systemd/system/perflab.service\n":        {"--contents", path},
		"./usr/lib/sysusers.d/perflab.conf\n":               {"--contents", path},
	} {
		out, err := exec.Command("dpkg-deb", args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), ".ps1") {
			t.Errorf("%q: %v, want %q in\n%s", args, err, want, out)
		}
	}
}

func TestBill(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "perflab"}, Deps: []*debug.Module{
		{Path: "a.example/b", Version: "v1.0.0"}, {Path: "a.example/c", Version: "v2.0.0", Replace: &debug.Module{Path: "a.example/d", Version: "v3.0.0"}},
	}}
	b := billOf(info, "v0.3.0", at)
	var got []string
	for _, c := range b.Components {
		got = append(got, c.PURL)
	}
	want := []string{"pkg:golang/stdlib@1.26.8", "pkg:golang/a.example/b@v1.0.0", "pkg:golang/a.example/d@v3.0.0"}
	if d := cmp.Diff(want, got) + cmp.Diff(want, b.Dependencies[0].On); d != "" || b.Metadata.Component.PURL != "pkg:golang/perflab@v0.3.0" {
		t.Errorf("%s, %+v", d, b.Metadata)
	}
}
