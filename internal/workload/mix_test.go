package workload

import (
	"bytes"
	"encoding/base64"
	"image"
	_ "image/jpeg" // decodes what was made
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoRA(t *testing.T) {
	names := []string{"a", "b", "c"}
	models := func(s Spec) (out []string) {
		s.LoraModules, s.RandomInputLen = names, 1
		w := mustOpen(t, s)
		for r := range w.All() {
			out = append(out, r.Model)
		}
		return out
	}
	if got := models(Spec{NumPrompts: 7, LoraAssignment: "round-robin"}); !slices.Equal(got, []string{"a", "b", "c", "a", "b", "c", "a"}) {
		t.Errorf("in turn: %v", got)
	}
	const n = 3000
	random := models(Spec{NumPrompts: n})
	for _, name := range names {
		share := 0.0
		for _, m := range random {
			if m == name {
				share += 1.0 / n
			}
		}
		if math.Abs(share-1.0/3) > 4*math.Sqrt(2.0/9/n) {
			t.Errorf("adapter %s gets %.3f of the requests", name, share)
		}
	}
	if !slices.Equal(random, models(Spec{NumPrompts: n})) || slices.Equal(random, models(Spec{NumPrompts: n, Seed: 1})) {
		t.Error("the choice is not the seed's")
	}
	// A conversation keeps its adapter.
	w := mustOpen(t, Spec{Dataset: "conversations", NumPrompts: 9, LoraModules: names, LoraAssignment: "round-robin"})
	turns, _ := walk(w, slices.Collect(w.All()), said)
	for _, r := range turns {
		if r.Model != names[(r.Session-1)%3] {
			t.Errorf("turn %d of conversation %d goes to %s", r.Turn, r.Session, r.Model)
		}
	}
}

// TestImageShares: of several sizes each has its share, within four standard deviations.
func TestImageShares(t *testing.T) {
	const n = 400
	counts := map[image.Point]int{}
	for r := range mustOpen(t, Spec{NumPrompts: n, RandomInputLen: 2, RandomImages: 1, RandomImageSize: "8x8:1,16x8:2,8x24:1"}).All() {
		data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Images[0], "data:image/jpeg;base64,"))
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		counts[image.Pt(c.Width, c.Height)]++
	}
	for size, share := range map[image.Point]float64{{X: 8, Y: 8}: 0.25, {X: 16, Y: 8}: 0.5, {X: 8, Y: 24}: 0.25} {
		if off := math.Abs(float64(counts[size]) - share*n); off > 4*math.Sqrt(n*share*(1-share)) {
			t.Errorf("%d of %d images are %v, which has a share of %g", counts[size], n, size, share)
		}
	}
	if len(counts) != 3 {
		t.Errorf("sizes %v", counts)
	}
}

func TestImages(t *testing.T) {
	w := mustOpen(t, Spec{Dataset: "conversations", NumPrompts: 6, Turns: "2", RandomImages: 2, RandomImageSize: "17x40-60x43"})
	turns, _ := walk(w, slices.Collect(w.All()), said)
	seen, sizes := map[string]bool{}, map[image.Point]bool{}
	for _, r := range turns {
		if len(r.Images) != 2 {
			t.Fatalf("turn %d has %d images", r.Index, len(r.Images))
		}
		for _, url := range r.Images {
			if seen[url] {
				t.Errorf("turn %d repeats an image", r.Index)
			}
			seen[url] = true
			data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(url, "data:image/jpeg;base64,"))
			if err != nil {
				t.Fatal(err)
			}
			img, kind, err := image.Decode(bytes.NewReader(data))
			if err != nil || kind != "jpeg" {
				t.Fatalf("%s, %v", kind, err)
			}
			size := img.Bounds().Size()
			if size.X < 17 || size.X > 60 || size.Y < 40 || size.Y > 43 {
				t.Errorf("an image of %v", size)
			}
			sizes[size] = true
		}
	}
	if len(sizes) < 10 {
		t.Errorf("only %d sizes in %d images", len(sizes), len(seen))
	}
	again := mustOpen(t, w.Spec())
	for r := range again.All() {
		again.Prepare(r)
	}
	ahead, _ := walk(again, slices.Collect(again.All()), said)
	if d := cmp.Diff(turns, ahead); d != "" {
		t.Errorf("images made ahead differ:\n%s", d)
	}
	if d := cmp.Diff(slices.Collect(w.All()), slices.Collect(again.All())); d != "" {
		t.Errorf("images differ from run to run:\n%s", d)
	}
}

func TestRichRows(t *testing.T) {
	dir := t.TempDir()
	png := "\x89PNG\r\n\x1a\n123"
	for name, content := range map[string]string{"p.png": png, "text": "no image", "p.webp": "RIFF1234WEBPx", "p.gif": "GIF89a.", "p.jpg": "\xff\xd8\xff."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(text string) (*Workload, error) {
		path := filepath.Join(dir, "rows.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Open(Spec{Dataset: "jsonl", Path: path, DisableShuffle: true, NumPrompts: 4})
	}
	w, err := open(`{"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "a b"}, {"role": "assistant", "content": "c"}, {"role": "user", "content": [{"type": "text", "text": "d"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}], "images": ["p.png", "data:,"], "tools": [{"a": 1}], "tool_choice": "auto", "fields": {"zed": null}}
{"prompt": "query", "documents": ["one two", "three"], "model": "adapter", "response_format": {"type": "json_object"}}
{"prompt": "plain"}
{"prompt": "", "system": "s", "images": ["p.webp", "p.gif", "p.jpg"]}`)
	if err != nil {
		t.Fatal(err)
	}
	data := func(kind, content string) string {
		return "data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(content))
	}
	want := []Request{
		{Index: 0, Prompt: "d", Input: 6, System: "be brief", History: []Message{{"user", "a b"}, {"assistant", "c"}},
			Images: []string{"http://x/y.png", data("png", png), "data:,"}, Fields: []byte(`{"tool_choice":"auto","tools":[{"a":1}],"zed":null}`), EOS: true},
		{Index: 1, Prompt: "query", Input: 4, Documents: []string{"one two", "three"}, Model: "adapter", Fields: []byte(`{"response_format":{"type":"json_object"}}`), EOS: true},
		{Index: 2, Prompt: "plain", Input: 1, EOS: true},
		{Index: 3, Input: 1, System: "s", Images: []string{data("webp", "RIFF1234WEBPx"), data("gif", "GIF89a."), data("jpeg", "\xff\xd8\xff.")}, EOS: true},
	}
	if d := cmp.Diff(want, slices.Collect(w.All())); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if _, what := w.NeedsChat(); what != "a dataset with system prompts, history or images" {
		t.Errorf("needs chat: %q", what)
	}
	plain, err := open(`{"prompt": "plain", "fields": {"a": 1}}`)
	if err != nil {
		t.Fatal(err)
	}
	if path, what := plain.NeedsChat(); path != "" || what != "" {
		t.Errorf("plain rows: %q %q", path, what)
	}

	for text, want := range map[string]string{
		`{"prompt": "a", "images": ["."]}`:                                                                    "line 1: image 1: " + dir + " is no file",
		`{"prompt": "a", "images": ["gone.png"]}`:                                                             "line 1: image 1: open " + filepath.Join(dir, "gone.png"),
		"\n" + `{"prompt": "a", "images": ["p.png", "text"]}`:                                                 "line 2: image 2: " + filepath.Join(dir, "text") + " is no PNG, JPEG, WebP or GIF file",
		`{"prompt": "a", "tools": [], "fields": {"tools": []}}`:                                               "line 1: a row has tools itself or in fields, not both",
		`{"prompt": "a", "fields": {"stream": false}}`:                                                        `line 1: fields has "stream", which it may not set`,
		`{"system": "a", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "a"}]}`: "line 1: a row has system or a system message in messages, not both",
		`{"messages": [{"role": "assistant", "content": "a"}]}`:                                               `line 1: messages: role "assistant" stands where "user" is due`,
		`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`:             "line 1: messages must go user, assistant, user, and end with",
		`{"messages": [{"role": "user", "content": 7}]}`:                                                      "line 1: content must be a string or a list of parts",
		`{"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}`:                              `line 1: content[0] has type "input_audio"`,
		`{"messages": [{"role": "user", "content": "a", "name": "b"}]}`:                                       `line 1: unknown field "name"`,
		`{"prompt": "a", "fields": [1]}`:                                                                      "line 1: cannot unmarshal array into Go struct field jsonlRow.fields",
		`{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}`: "line 1: messages: only the last one may have images",
	} {
		if _, err := open(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := Open(Spec{Dataset: "conversations", Path: file(t, `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}`)}); err == nil ||
		!strings.Contains(err.Error(), "line 1: messages[0]: images are for dataset_name jsonl") {
		t.Errorf("images of a conversation: %v", err)
	}
}
