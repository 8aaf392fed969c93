// Command release builds what a release publishes, into a directory: archives with the program, its
// manual pages and completions, Debian packages, a bill of materials of each program, and checksums.
// It is run by make release; see docs/release.md.
//
// The same commit gives the same bytes: all times are that of the commit, and nothing of the machine
// gets into a file.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// target is a system that is built for.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "_" + t.arch }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"darwin", "amd64"}, {"windows", "amd64"}}

// release is what is built.
type release struct {
	source   string // directory of the source
	out      string
	version  string // "v0.3.0", or what git describes
	commit   string
	modified bool
	at       time.Time // of the commit
}

func main() {
	r := release{source: "."}
	flag.StringVar(&r.out, "out", "dist", "directory to write, which must not exist")
	flag.Parse()
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) make() error {
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("make the directory of the release: %w (remove it first)", err)
	}
	docs, err := r.documents()
	if err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Fprintln(os.Stderr, "building", t)
		if err := r.target(t, docs); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return r.checksums()
}

// identify asks git what the source is.
func (r *release) identify() error {
	described, err := r.git("describe", "--tags", "--always", "--dirty", "--match", "v[0-9]*")
	if err != nil {
		return err
	}
	if r.commit, err = r.git("rev-parse", "HEAD"); err != nil {
		return err
	}
	at, err := r.git("show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if r.at, err = time.Parse(time.RFC3339, at); err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	r.at = r.at.UTC()
	r.version, r.modified = versionOf(described), strings.HasSuffix(described, "-dirty")
	return nil
}

// versionOf is a version of what git describes, which is a commit alone where there is no tag.
func versionOf(described string) string {
	if strings.HasPrefix(described, "v") {
		return described
	}
	return "v0.0.0-g" + described
}

func (r *release) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", r.source}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// target builds what is published for one system.
func (r *release) target(t target, docs []file) error {
	program := filepath.Join(r.out, "bin", "perflab_"+t.String()+t.suffix())
	if err := r.build(t, program); err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	base := filepath.Join(r.out, "perflab_"+strings.TrimPrefix(r.version, "v")+"_"+t.String())
	files := []file{{"perflab" + t.suffix(), 0o755, content}}
	for _, d := range docs {
		if services[d.name] == "" || t.system == "linux" {
			files = append(files, d)
		}
	}
	if t.system == "windows" {
		err = writeTo(base+".zip", func(f *os.File) error { return zipped(f, filepath.Base(base), files, r.at) })
	} else {
		err = writeTo(base+".tar.gz", func(f *os.File) error { return tarball(f, filepath.Base(base)+"/", files, r.at) })
	}
	if err != nil {
		return err
	}
	if t.system == "linux" {
		if err := writeTo(base+".deb", func(f *os.File) error { return debian(f, r.version, t.arch, files, r.at) }); err != nil {
			return err
		}
	}
	return writeTo(base+".cdx.json", func(f *os.File) error { return materials(f, program, r.version, r.at) })
}

func (t target) suffix() string {
	if t.system == "windows" {
		return ".exe"
	}
	return ""
}

// build compiles for a target. What git knows is linked in by flags and not by Go, which calls a
// source modified where a file is that no commit ignores.
func (r *release) build(t target, program string) error {
	const at = "perflab/internal/version."
	ldflags := []string{"-s", "-w", "-buildid="}
	for name, value := range map[string]string{"release": r.version, "commit": r.commit, "date": r.at.Format(time.RFC3339), "modified": fmt.Sprint(r.modified)} {
		ldflags = append(ldflags, "-X", at+name+"="+value)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(ldflags, " "), "-o", program, "./cmd/perflab")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+t.system, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func writeTo(path string, write func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}
