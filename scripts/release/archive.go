package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one of an archive.
type file struct {
	name    string // with slashes
	mode    fs.FileMode
	content []byte
}

// tarball writes files below a directory, as root's, at one time.
func tarball(w io.Writer, dir string, files []file, at time.Time) error {
	gz, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(gz)
	made := map[string]bool{".": true}
	for _, f := range files {
		name := dir + f.name
		for _, parent := range parents(name) {
			if made[parent] {
				continue
			}
			made[parent] = true
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dotted(dir, parent) + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR}); err != nil {
				return err
			}
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dotted(dir, name), Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := t.Write(f.content); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return gz.Close()
}

// dotted is a name as Debian's packages have it, "./usr/bin/perflab", where the archive has no
// directory of its own.
func dotted(dir, name string) string {
	if dir == "" {
		return "./" + name
	}
	return name
}

// parents are the directories above a name, the highest first.
func parents(name string) []string {
	var out []string
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		out = append(out, d)
	}
	slices.Reverse(out)
	return out
}

// zipped is tarball for systems that have no tar.
func zipped(w io.Writer, dir string, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		out, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := out.Write(f.content); err != nil {
			return err
		}
	}
	return z.Close()
}

// debianVersion is a version as dpkg compares them: later commits of a release come after it.
func debianVersion(version string) string {
	number, rest, more := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if !more {
		return number
	}
	return number + "+" + strings.ReplaceAll(rest, "-", ".")
}

// debian writes a package: an ar archive of its format's version, what is said of it, and its files.
func debian(w io.Writer, version, arch string, files []file, at time.Time) error {
	installed := installedFiles(files)
	var data, control bytes.Buffer
	if err := tarball(&data, "", installed, at); err != nil {
		return err
	}
	size, sums := 0, ""
	for _, f := range installed {
		size += len(f.content)
		sums += fmt.Sprintf("%x  %s\n", md5.Sum(f.content), f.name)
	}
	says := fmt.Sprintf(`Package: perflab
Version: %s
Architecture: %s
Maintainer: perflab
Section: utils
Priority: optional
Installed-Size: %d
Recommends: openssh-client
Description: benchmarks and tunes LLM serving engines
 Measures vLLM, SGLang, TensorRT-LLM and llama.cpp, and searches the serving
 command that is best for a load on given hardware. It is one static program,
 and needs no GPU to try it.
`, debianVersion(version), arch, (size+1023)/1024)
	if err := tarball(&control, "", []file{{"control", 0o644, []byte(says)}, {"md5sums", 0o644, []byte(sums)}}, at); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, m := range []file{{"debian-binary", 0, []byte("2.0\n")}, {"control.tar.gz", 0, control.Bytes()}, {"data.tar.gz", 0, data.Bytes()}} {
		if err := member(w, m.name, m.content, at); err != nil {
			return err
		}
	}
	return nil
}

// member is one of an ar archive, whose content has an even length.
func member(w io.Writer, name string, content []byte, at time.Time) error {
	padding := strings.Repeat("\n", len(content)%2)
	_, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n%s%s", name, at.Unix(), 0, 0, 0o100644, len(content), content, padding)
	return err
}

// installedFiles are those of an archive at the places of a system.
func installedFiles(files []file) []file {
	var out []file
	for _, f := range files {
		dir, name := path.Split(f.name)
		switch {
		case f.name == "perflab":
			f.name = "usr/bin/perflab"
		case dir == "man/":
			var b bytes.Buffer
			gz, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is right
			gz.Write(f.content)                                    // a buffer takes everything
			gz.Close()
			f.name, f.content = "usr/share/man/man1/"+name+".gz", b.Bytes()
		case name == "perflab.bash":
			f.name = "usr/share/bash-completion/completions/perflab"
		case name == "_perflab":
			f.name = "usr/share/zsh/vendor-completions/_perflab"
		case name == "perflab.fish":
			f.name = "usr/share/fish/vendor_completions.d/perflab.fish"
		case name == "perflab.service":
			f.name = "usr/lib/systemd/system/perflab.service"
		case name == "perflab.sysusers":
			f.name = "usr/lib/sysusers.d/perflab.conf"
		case dir == "completions/":
			continue // of another system's shell
		case name == "LICENSE":
			f.name = "usr/share/doc/perflab/copyright"
		default:
			f.name = "usr/share/doc/perflab/" + f.name
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return out
}

// checksums writes those of all that is published, as sha256sum -c reads them.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() { // the programs alone, of which images are made
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
