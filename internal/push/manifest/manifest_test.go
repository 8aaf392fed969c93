package manifest

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
)

const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func with(name string, paths ...string) Manifest {
	m := Manifest{Schema: Schema, Name: name}
	for _, p := range paths {
		m.Files = append(m.Files, File{p, 3, digest})
	}
	return m
}

func TestValidate(t *testing.T) {
	many := with("run")
	many.Files = make([]File, MostFiles+1)
	old := with("run", "a")
	old.Schema = "perflab.push/0"
	short := with("run", "a")
	short.Files[0].SHA256 = "abc"
	capital := with("run", "a")
	capital.Files[0].SHA256 = strings.ToUpper(digest)
	below := with("run", "a")
	below.Files[0].Size = -1
	large := with("run", "a", "b")
	large.Files[0].Size, large.Files[1].Size = MostBytes, 1
	for _, test := range []struct {
		name string
		m    Manifest
		want string // "": it is right
	}{
		{"plain", with("run", "header.json", "logs/engine.log"), ""},
		{"a space and umlauts", with("Lauf über Nacht", "logs/größe 1.log"), ""},
		{"no files", with("run"), "files: is empty"},
		{"too many", many, "files: has 100001 files"},
		{"version", old, "another version"},
		{"upwards", with("run", "../x"), "only dots"},
		{"upwards inside", with("run", "a/../../x"), "only dots"},
		{"absolute", with("run", "/etc/passwd"), "begins with a slash"},
		{"drive", with("run", `C:x`), "one of the characters"},
		{"backslash", with("run", `a\..\x`), "backslash"},
		{"device", with("run", "logs/NUL.txt"), "device"},
		{"hidden", with("run", ".ssh/x"), "begins with a dot"},
		{"nothing", with("run", ""), "empty"},
		{"no text", with("run", "a\xff"), "UTF-8"},
		{"end of line", with("run", "a\nb"), "not shown"},
		{"at the end", with("run", "a. "), "ends with a dot"},
		{"long", with("run", strings.Repeat("a/", 600)+"a"), "longer than 1024"},
		{"twice", with("run", "a", "a"), "twice"},
		{"capital letters", with("run", "a/B", "A/b"), "capital letters"},
		{"a file above", with("run", "a", "a/b"), "a file and a directory"},
		{"a file above, later", with("run", "a/b/c", "A"), "a file and a directory"},
		{"name of a path", with("a/b", "x"), "slash"},
		{"name upwards", with("..", "x"), "only dots"},
		{"name hidden", with(".perflab", "x"), "begins with a dot"},
		{"name under way", with("run.TMP", "x"), "under way"},
		{"name empty", with("", "x"), "empty"},
		{"name long", with(strings.Repeat("x", 201), "x"), "longer than 200"},
		{"digest short", short, "64 small"},
		{"digest in capitals", capital, "64 small"},
		{"below zero", below, "below 0"},
		{"large", large, "more than"},
	} {
		err := test.m.Validate()
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestID: what is pushed is known by its files, whatever it is called.
func TestID(t *testing.T) {
	a, b := with("x", "a", "b"), with("y", "a", "b")
	b.Entry = "123"
	if a.ID() != b.ID() {
		t.Errorf("%s and %s", a.ID(), b.ID())
	}
	for _, other := range []Manifest{with("x", "a"), with("x", "b", "a"), with("x", "a", "c")} {
		if other.ID() == a.ID() {
			t.Errorf("%v has the ID of %v", other, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range []Manifest{with("run", "header.json"), with("..", "../x"), with("a", "a", "a/b")} {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"perflab.push/1","name":"a","files":[{"path":"CON","size":1e99}]} x`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		for _, x := range m.Files {
			if path.Clean("/"+x.Path) != "/"+x.Path || strings.ContainsAny(x.Path, "\\\x00:") {
				t.Errorf("%q was taken", x.Path)
			}
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Parse(again)
		if err != nil || n.ID() != m.ID() {
			t.Errorf("written and read again: %v", err)
		}
	})
}
