package arch

import (
	"strings"
	"testing"
)

// The list fits 100 columns, has every device under its maker and models in order.
func TestListing(t *testing.T) {
	text := Listing()
	for line := range strings.Lines(text) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 100 || strings.HasSuffix(line, " \n") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	last := -1
	for _, want := range []string{
		"NVIDIA accelerators", "\n  b200 ", "\n  gb10 ", "\nAMD accelerators", "\n  mi300x ", "\nHuawei accelerators", "\n  ascend-910b ",
		"\nIntel accelerators", "\n  xeon-8480 ", "\nmodels", "\n  deepseek-ai/DeepSeek-V3 ", "\n  meta-llama/Llama-3.3-70B-Instruct ", "\n  Qwen/Qwen3-32B ", "\n  zai-org/GLM-4.6 ",
	} {
		at := strings.Index(text, want)
		if at <= last {
			t.Errorf("%q is at %d, not after %d in\n%s", want, at, last, text)
		}
		last = at
	}
	for _, a := range Accelerators() {
		if strings.Count(text, "\n  "+a.Name+" ") != 1 {
			t.Errorf("%s is not listed once", a.Name)
		}
	}
}
