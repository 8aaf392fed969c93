package place

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, name := range []string{"a", "a/b.json", "logs/engine-0.log", ".hidden", "a..b", "...", "später.txt", strings.Repeat("x", 255), "con-fig", "aux1", "COM10.txt"} {
		if err := check(name, true); err != nil && name != "..." {
			t.Errorf("%q: %v", name, err)
		}
		if err := check(name, false); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "/", "/etc/passwd", "..", "../a", "a/../b", "a/..", "./a", "a/./b", "a//b", "a/", `..\a`, `a\b`, "a\x00b", "a\nb", "a\rb", "\u202ea", "a\u2028",
		"\xff", strings.Repeat("x", 256), strings.Repeat("x/", 3000) + "x"} {
		if check(name, false) == nil || check(name, true) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"CON", "con", "nul.txt", "AUX.tar.gz", "a/COM1", "lpt9.log", "com¹", "CONIN$", "nul ", "nul .txt", "C:", "c:/windows", "a:stream", "a.", "a ", "a. ", "what?", "a|b"} {
		if check(name, true) == nil {
			t.Errorf("%q is taken on Windows", name)
		}
		if err := check(name, false); err != nil {
			t.Errorf("%q elsewhere: %v", name, err)
		}
	}
}

// laboratory makes a directory with files, and things that are none, beside a secret.
func laboratory(t testing.TB) *Place {
	t.Helper()
	outer := t.TempDir()
	root := filepath.Join(outer, "root")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(outer, "secret"), "SECRET")
	for _, name := range []string{"header.json", "page.html", "plot.svg", "x.js", "x.css", "x.png", "noext", "logs/engine.log", "calls.jsonl"} {
		write(filepath.Join(root, name), "<script>alert(1)</script>")
	}
	for link, to := range map[string]string{"out": "../secret", "absolute": filepath.Join(outer, "secret"), "outdir": "..", "in": "header.json", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip("links cannot be made here: ", err)
		}
	}
	p, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestFile(t *testing.T) {
	p := laboratory(t)
	for _, name := range []string{"header.json", "in", "logs/engine.log"} {
		f, info, err := p.File(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.Close(); info.Size() != 25 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
	for _, name := range []string{"out", "absolute", "outdir/secret", "loop", "logs", "none", "../secret", "logs/../../secret", "/etc/passwd", "", "header.json/x"} {
		if f, _, err := p.File(name); err == nil {
			t.Errorf("%q is opened", name)
			f.Close()
		}
	}
	_, _, err := p.File("none")
	_, _, bad := p.File("..")
	if !Gone(err) || !Gone(bad) || Gone(fs.ErrPermission) {
		t.Errorf("%v, %v", err, bad)
	}
}

func TestServe(t *testing.T) {
	p := laboratory(t)
	for name, want := range map[string]string{
		"header.json": "application/json", "logs/engine.log": "text/plain; charset=utf-8", "calls.jsonl": "text/plain; charset=utf-8", "x.png": "image/png",
		"page.html": "application/octet-stream", "plot.svg": "application/octet-stream", "x.js": "application/octet-stream", "x.css": "application/octet-stream", "noext": "application/octet-stream",
	} {
		w := httptest.NewRecorder()
		p.Serve(w, httptest.NewRequest("GET", "/", nil), name)
		h := w.Header()
		if w.Code != http.StatusOK || h.Get("Content-Type") != want || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %v", name, w.Code, h)
		}
		if saved := strings.HasPrefix(h.Get("Content-Disposition"), "attachment"); saved != (want == "application/octet-stream") {
			t.Errorf("%s: a browser saves it: %v", name, saved)
		}
	}
	for _, name := range []string{"out", "none", "../secret", "logs", "page.html\x00.json"} {
		w := httptest.NewRecorder()
		p.Serve(w, httptest.NewRequest("GET", "/", nil), name)
		if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "SECRET") || w.Body.String() != "there is no such file\n" {
			t.Errorf("%q: %d %q", name, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Range", "bytes=1-6")
	if p.Serve(w, r, "header.json"); w.Code != http.StatusPartialContent || w.Body.String() != "script" {
		t.Errorf("a part of a file: %d %q", w.Code, w.Body)
	}
}

func TestDisposition(t *testing.T) {
	for name, want := range map[string]string{
		"run.json": "run.json", "a/b/run.json": "run.json", `..\..\evil.exe`: "evil.exe", "": "file", "..": "file", "a\"; filename=evil.html": "a_; filename=evil.html",
		"a\r\nSet-Cookie: x=y": "aSet-Cookie_ x=y", "später.txt": "später.txt", "x\u202egnp.exe": "xgnp.exe", "<script>": "_script_",
	} {
		d := Disposition(name)
		kind, values, err := mime.ParseMediaType(d)
		if err != nil || kind != "attachment" || values["filename"] != want || strings.ContainsAny(d, "\r\n\x00") {
			t.Errorf("%q: %q, which says %q, %v", name, d, values["filename"], err)
		}
	}
}

func TestReserve(t *testing.T) {
	dir := t.TempDir()
	room, err := free(dir)
	if errors.Is(err, ErrUnknown) {
		t.Skip(err)
	}
	if err != nil || room <= 0 {
		t.Fatalf("%d free, %v", room, err)
	}
	// What others write on this disk meanwhile must not decide: sizes are far from the bound.
	d := &Disk{Keep: room / 2}
	if _, err := d.Reserve(dir, 1<<62); !full(err) {
		t.Errorf("what is larger than the disk: %v", err)
	}
	if _, err := d.Reserve(dir, -1); err == nil || full(err) {
		t.Errorf("an unknown size: %v", err)
	}
	one, err := d.Reserve(dir, room/4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reserve(dir, room*3/8); !full(err) {
		t.Errorf("two at once that do not fit together: %v", err)
	}
	one()
	one()
	if two, err := d.Reserve(dir, room*3/8); err != nil {
		t.Errorf("after the first was given back: %v", err)
	} else {
		two()
	}
	if d.pending != 0 {
		t.Errorf("%d bytes stay set aside", d.pending)
	}
	if _, err := d.Reserve(filepath.Join(dir, "none"), 1); err == nil {
		t.Error("a directory that is not there has room")
	}
}

func full(err error) bool {
	_, ok := errors.AsType[*FullError](err)
	return ok
}

func TestWriter(t *testing.T) {
	if _, err := free(t.TempDir()); errors.Is(err, ErrUnknown) {
		t.Skip(err)
	}
	var out bytes.Buffer
	if n, err := io.Copy((&Disk{}).Writer(t.TempDir(), &out), strings.NewReader(strings.Repeat("x", 3<<20))); err != nil || n != 3<<20 || out.Len() != 3<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := (&Disk{Keep: math.MaxInt64 / 2}).Writer(t.TempDir(), &out).Write([]byte("x")); !full(err) {
		t.Errorf("on a disk without room: %v", err)
	}
}

// Whatever a name is, it opens a file below the directory or nothing.
func FuzzFile(f *testing.F) {
	p := laboratory(f)
	for _, s := range []string{"header.json", "../secret", "out", "outdir/secret", "logs/engine.log", "logs/../../secret", "/etc/passwd", `..\secret`, "a\x00b", "C:\\x", "nul"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if check(name, true) == nil && check(name, false) != nil {
			t.Errorf("%q is taken on Windows alone", name)
		}
		if check(name, true) == nil && !filepath.IsLocal(name) {
			t.Errorf("%q is taken and leads out", name)
		}
		file, _, err := p.File(name)
		if err != nil {
			return
		}
		defer file.Close()
		if b, err := io.ReadAll(file); err != nil || string(b) != "<script>alert(1)</script>" {
			t.Errorf("%q opens %q, %v", name, b, err)
		}
	})
}

func FuzzDisposition(f *testing.F) {
	f.Add("a\r\nb")
	f.Fuzz(func(t *testing.T, name string) {
		d := Disposition(name)
		kind, values, err := mime.ParseMediaType(d)
		if err != nil || kind != "attachment" || Check(values["filename"]) != nil {
			t.Errorf("%q: %q, %v", name, d, err)
		}
	})
}
