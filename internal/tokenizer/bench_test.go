package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchTexts are prose and code of this repository, cut as prompts are.
func benchTexts(b *testing.B) (texts []string, size int64) {
	b.Helper()
	for _, pattern := range []string{"*.go", "../../docs/*.md", "testdata/*.py"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				b.Fatal(err)
			}
			for s := range strings.SplitSeq(string(data), "\n\n") {
				texts = append(texts, s)
				size += int64(len(s))
			}
		}
	}
	return texts, size
}

// BenchmarkEncode encodes with each fixture, or each tokenizer.json in the
// folders of PERFLAB_TOKENIZERS. Cold: every word is new to the cache.
func BenchmarkEncode(b *testing.B) {
	texts, size := benchTexts(b)
	for name, t := range benchTokenizers(b) {
		run := func(temperature string, each func()) {
			b.Run(name+"/"+temperature, func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					each()
					for _, s := range texts {
						t.Count(s)
					}
				}
			})
		}
		run("warm", func() {})
		run("cold", func() { t.cache = newCache() })
	}
}

func BenchmarkDecode(b *testing.B) {
	texts, size := benchTexts(b)
	for name, t := range benchTokenizers(b) {
		var lists [][]int32
		for _, s := range texts {
			ids, err := t.Encode(s, false)
			if err != nil {
				b.Fatal(err)
			}
			lists = append(lists, ids)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				for _, ids := range lists {
					if _, err := t.Decode(ids); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkParse reads the tokenizer.json files of PERFLAB_TOKENIZERS.
func BenchmarkParse(b *testing.B) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("PERFLAB_TOKENIZERS"), "*", "tokenizer.json"))
	if err != nil || len(files) == 0 {
		b.Skip("PERFLAB_TOKENIZERS names no folder of tokenizers")
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(filepath.Dir(f)), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchTokenizers(b *testing.B) map[string]*Tokenizer {
	b.Helper()
	all := map[string]*Tokenizer{}
	files, err := filepath.Glob(filepath.Join(os.Getenv("PERFLAB_TOKENIZERS"), "*", "tokenizer.json"))
	if err != nil {
		b.Fatal(err)
	}
	if os.Getenv("PERFLAB_TOKENIZERS") == "" {
		files = nil
	}
	for _, f := range files {
		t, err := Open(f)
		if err != nil {
			b.Fatal(err)
		}
		all[filepath.Base(filepath.Dir(f))] = t
	}
	if len(all) == 0 {
		for _, name := range []string{"llama3", "o200k", "deepseek", "llama2", "t5", "bert"} {
			all[name] = fixture(b, name)
		}
	}
	return all
}
