package doc

import "testing"

func TestMarkdownText(t *testing.T) {
	for in, want := range map[string]string{
		"total_token_throughput": "total_token_throughput", "_em_ *b* `c` [d]": `\_em\_ \*b\* \` + "`c\\` \\[d\\]",
		"a | b\nc": `a \| b c`, "<b> && A < B": "&lt;b> &amp;&amp; A &lt; B", "~~x~~": `\~\~x\~\~`,
		"(_x_) a_b 2_é": `(\_x\_) a_b 2_é`,
	} {
		if got := mdText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"": "", "a|b": "`a\\|b`", "`": "`` ` ``"} {
		if got := mdCode(in); got != want {
			t.Errorf("code %q: %q, want %q", in, got, want)
		}
	}
}
