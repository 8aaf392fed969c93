// Package place opens files that others name, and keeps them from filling the disk.
//
//	p, err := place.Open(dir)
//	p.Serve(w, r, r.PathValue("name"))
//	release, err := (&place.Disk{Keep: 1 << 30}).Reserve(dir, r.ContentLength)
//
// Invariants: no name leads out of the directory, by dots, links or what a system makes of a name.
// What a browser would run is never served as what it is: logs and imports are text or attachments.
package place

import (
	"fmt"
	"mime"
	"path"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longest names, in bytes: what file systems take.
const (
	longestPart = 255
	longestName = 4096
)

// NameError says why a name is not taken.
type NameError struct{ Reason string }

func (e *NameError) Error() string { return "the name of a file " + e.Reason }

// Check reports what is wrong with the name of a file below a directory: parts that are joined by
// slashes, none of which means something else than a file to any system that perflab runs on.
func Check(name string) error { return check(name, runtime.GOOS == "windows") }

func check(name string, windows bool) error {
	switch {
	case name == "":
		return &NameError{"is empty"}
	case len(name) > longestName:
		return &NameError{fmt.Sprintf("is longer than %d bytes", longestName)}
	case !utf8.ValidString(name):
		return &NameError{"is no UTF-8"}
	case strings.ContainsFunc(name, steers):
		return &NameError{"has a character that is not shown"}
	case strings.HasPrefix(name, "/"):
		return &NameError{"begins with a slash"}
	case strings.Contains(name, `\`):
		return &NameError{"has a backslash"}
	}
	for part := range strings.SplitSeq(name, "/") {
		if err := checkPart(part, windows); err != nil {
			return err
		}
	}
	return nil
}

// steers tells characters by which a name would look like another one, and NUL and the ends of lines.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func checkPart(part string, windows bool) error {
	switch {
	case part == "" || part == "." || part == "..":
		return &NameError{"has a part that is empty or only dots"}
	case len(part) > longestPart:
		return &NameError{fmt.Sprintf("has a part longer than %d bytes", longestPart)}
	case windows && strings.ContainsAny(part, `:<>"|?*`):
		return &NameError{`has one of the characters :<>"|?*`}
	case windows && strings.TrimRight(part, ". ") != part:
		return &NameError{"has a part that ends with a dot or a space"}
	case windows && isDevice(part):
		return &NameError{"is that of a device"}
	}
	return nil
}

// isDevice tells names that Windows takes for devices whatever follows the first dot or blank.
func isDevice(part string) bool {
	base, _, _ := strings.Cut(part, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		if n, ok := strings.CutPrefix(base, port); ok && utf8.RuneCountInString(n) == 1 && strings.ContainsAny(n, "0123456789¹²³") {
			return true
		}
	}
	return false
}

// Disposition is a Content-Disposition header by which a browser saves a file under the last part
// of a name. Whatever is in the name, it is one header.
func Disposition(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case steers(r):
			return -1
		case strings.ContainsRune(`/\:<>"|?*`, r):
			return '_'
		}
		return r
	}, strings.ToValidUTF8(path.Base(strings.ReplaceAll(name, `\`, "/")), "_"))
	name = strings.Trim(name, ". ")
	for len(name) > longestPart {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if name == "" {
		name = "file"
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

// contentType is the type by which a file is served, and whether a browser only saves it. Nothing
// that a browser would run is served as what it is: pages, scripts, styles and SVG are not in the list.
func contentType(name string) (kind string, save bool) {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return "application/json", false
	case ".txt", ".log", ".jsonl", ".ndjson", ".md", ".yaml", ".yml", ".csv", ".toml", ".prom", ".out", ".err":
		return "text/plain; charset=utf-8", false
	case ".png":
		return "image/png", false
	case ".jpg", ".jpeg":
		return "image/jpeg", false
	}
	return "application/octet-stream", true
}

// CheckPortable is Check for names of files that travel: it also refuses what only other systems than
// this one take for something else, and names that begin with a dot, which are hidden.
func CheckPortable(name string) error {
	if err := check(name, true); err != nil {
		return err
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return &NameError{"has a part that begins with a dot"}
		}
	}
	return nil
}
