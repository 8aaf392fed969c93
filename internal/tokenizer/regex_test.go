package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPatternsCutAsOnigurumaDoes(t *testing.T) {
	var texts []string
	decodeJSON(t, unzip(t, "testdata/texts.gz"), &texts)
	texts = slices.DeleteFunc(texts, func(s string) bool { return utf8.RuneCountInString(s) >= 100 })
	var cases []struct {
		Pattern string
		Ends    [][]int // in code points
	}
	decodeJSON(t, unzip(t, "testdata/patterns.gz"), &cases)
	for _, c := range cases {
		p, err := compilePattern(c.Pattern, unicodeTables())
		if err != nil {
			t.Error(err)
			continue
		}
		wrong := 0
		for i, s := range texts {
			if got := ends(p, s); !slices.Equal(got, c.Ends[i]) {
				if wrong++; wrong < 3 {
					t.Errorf("%s on %+q\n got %v\nwant %v", c.Pattern, s, got, c.Ends[i])
				}
			}
		}
	}
}

// ends returns where the pieces of an isolating split end.
func ends(p *pattern, s string) []int {
	got := []int{}
	add := func(from, to int) {
		if from < to {
			got = append(got, utf8.RuneCountInString(s[:to]))
		}
	}
	done := 0
	for it := p.matches([]byte(s)); ; {
		start, end, ok := it.next()
		if !ok {
			break
		}
		add(done, start)
		add(start, end)
		done = end
	}
	add(done, len(s))
	return got
}

func TestPatternsThatAreNotUnderstoodAreNamed(t *testing.T) {
	for pattern, says := range map[string]string{
		`\R`:                   `\R`,
		`a{2}?`:                `{n}?`,
		`(?<name>a)`:           `(?<n`,
		`(?<=ab)c`:             "look-behind",
		`[[:alpha:]]`:          "[:",
		`\p{Greek}`:            "{Greek}",
		`\p{L`:                 `\p`,
		`(a`:                   "missing )",
		`a)`:                   "unmatched )",
		`[a`:                   "missing ]",
		`[]`:                   "empty class",
		`[b-a]`:                "range",
		`(?i:[\p{Lu}])`:        "case",
		`*a`:                   "*",
		`(?i:ss)`:              `"ss"`,
		`(?i:é)`:               `'é'`,
		`(?m:a)`:               "(?m:",
		`\xe9`:                 `\xe9`,
		`^*`:                   "assertion",
		`((a{9}b){900}c){900}`: "steps",
		`a{3,2}`:               "{3,2}",
		`(?:(?:a|b)*c)*d`:      "",
	} {
		_, err := compilePattern(pattern, unicodeTables())
		if says == "" {
			if err != nil {
				t.Errorf("%s: %v", pattern, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "not supported") {
			t.Errorf("%s: error %v does not name %s", pattern, err, says)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{gpt2, `(?:a|ab)*?b`, `[\w&&[^a]]{2,3}+`, `(?i:x)(?<!y)$`, `\p{^Lu}++`} {
		f.Add(s, "a b\nAB 'S x1")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 30 || len(text) > 20 || !utf8.ValidString(text) {
			return
		}
		if strings.Count(pattern, "*")+strings.Count(pattern, "+")+strings.Count(pattern, "{") > 3 {
			return // a backtracking matcher may take for ever, as the reference may
		}
		p, err := compilePattern(pattern, unicodeTables())
		if err != nil {
			return
		}
		last := 0
		for it := p.matches([]byte(text)); ; {
			start, end, ok := it.next()
			if !ok {
				break
			}
			if start < last || end < start || end > len(text) {
				t.Fatalf("match %d:%d after %d of %d bytes", start, end, last, len(text))
			}
			last = end
		}
	})
}
