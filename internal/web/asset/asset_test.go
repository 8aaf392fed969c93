package asset

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func get(t *testing.T, path, encoding string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestAssetsAreServedForEver(t *testing.T) {
	for _, name := range Names() {
		a := get(t, Path(name), "br, gzip")
		if a.StatusCode != http.StatusOK || !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %s, %v", name, a.Status, a.Header)
		}
		z, err := gzip.NewReader(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		plain := get(t, Path(name), "gzip;q=0")
		b, err := io.ReadAll(plain.Body)
		if err != nil || string(b) != string(packed) || strconv.Itoa(len(b)) != plain.Header.Get("Content-Length") {
			t.Errorf("%s: what is packed is not what is plain (%v)", name, err)
		}
	}
	digest := strings.Split(Path("app.js"), "/")[2]
	for _, path := range []string{Root, Root + "app.js", Root + digest + "/", Root + digest + "/absent.js", Root + "0123456789abcdef/app.js", Root + digest + "/../asset.go", Root + digest + "/uplot.min.js"} {
		if a := get(t, path, ""); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
}

func TestPathOfNoAssetPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Path of an unknown name is a path")
		}
	}()
	Path("absent.css")
}

// TestForeignFilesAreAsPublished: a change of a foreign file would go unseen.
func TestForeignFilesAreAsPublished(t *testing.T) {
	for name, want := range map[string]string{
		"uplot.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uplot.css":    "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		b, err := embedded.ReadFile("files/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s of uPlot 1.6.32 has the digest %s, want %s", name, got, want)
		}
	}
}

// TestModulesImportWhatIsServed finds names of modules that are not there, and anything of elsewhere.
func TestModulesImportWhatIsServed(t *testing.T) {
	imports := regexp.MustCompile(`(?:from |import\(|url\()"\./?([^"]+)"`)
	elsewhere := regexp.MustCompile(`https?://[^\s"')]+`)
	found := 0
	for name, f := range loaded().files {
		for _, m := range imports.FindAllStringSubmatch(string(f.plain), -1) {
			found++
			if _, ok := loaded().files[m[1]]; !ok {
				t.Errorf("%s imports %s, which is not served", name, m[1])
			}
		}
		for _, url := range elsewhere.FindAllString(string(f.plain), -1) {
			if url != "http://www.w3.org/2000/svg" && name != "uplot.js" {
				t.Errorf("%s names %s", name, url)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d imports were found", found)
	}
}

// TestColoursCanBeSeen holds the colours of both schemes against what the eye needs: text 4.5:1, lines and what can be pressed 3:1.
func TestColoursCanBeSeen(t *testing.T) {
	report, err := os.ReadFile("../../report/doc/page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	app := string(loaded().files["app.css"].plain)
	variable := regexp.MustCompile(`--([a-z0-9]+):\s*(#[0-9a-f]{3,6})\b`)
	read := func(css string, into map[string]string) {
		for _, m := range variable.FindAllStringSubmatch(css, -1) {
			into[m[1]] = m[2]
		}
	}
	schemes := map[string]map[string]string{"light": {}, "dark": {}}
	for _, css := range []string{string(report), app} {
		light, dark, ok := strings.Cut(css, "prefers-color-scheme")
		if !ok {
			t.Fatal("there is no dark scheme")
		}
		dark = dark[:strings.Index(dark, "}")]
		read(light, schemes["light"])
		read(light, schemes["dark"])
		read(dark, schemes["dark"])
	}
	text := map[string][]string{
		"fg": {"bg", "soft", "raised"}, "muted": {"bg", "soft", "raised"}, "accent": {"bg", "soft", "raised"}, "good": {"bg", "goodbg"}, "bad": {"bg", "badbg", "raised"},
		"warn": {"bg", "warnbg"}, "simfg": {"bg", "warnbg"}, "onaccent": {"accent"}, "slo": {"bg"},
	}
	lines := map[string][]string{"edge": {"bg", "raised", "soft"}, "axis": {"bg"}}
	for i := range 10 {
		lines["s"+strconv.Itoa(i)] = []string{"bg"}
	}
	for scheme, colours := range schemes {
		hold := func(pairs map[string][]string, least float64) {
			for fg, all := range pairs {
				for _, bg := range all {
					if c := contrast(t, colours[fg], colours[bg]); c < least {
						t.Errorf("%s: %s %s on %s %s has %.2f:1, needs %.1f:1", scheme, fg, colours[fg], bg, colours[bg], c, least)
					}
				}
			}
		}
		hold(text, 4.5)
		hold(lines, 3)
	}
}

// contrast is WCAG's ratio of two colours.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(c string) float64 {
		if len(c) == 4 {
			c = "#" + strings.Repeat(c[1:2], 2) + strings.Repeat(c[2:3], 2) + strings.Repeat(c[3:4], 2)
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(c, "#"), 16, 32)
		if err != nil {
			t.Fatalf("%q is no colour", c)
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(n>>(16-8*i)&255) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
