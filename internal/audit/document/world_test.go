package document

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// onHardware is a section on its own hardware with a block that its own
// benchmark command asked for.
func onHardware(heading, hardware, serve, bench, block string) string {
	return "### " + heading + "\n\n- Hardware: " + hardware + "\n\n```bash\n" + serve + "\n```\n\n```bash\n" + bench + "\n```\n\n" + block
}

// TestSectionsOfTheirOwn holds documents of several environments against the
// checks that compare blocks: what differs by the text was meant to differ.
func TestSectionsOfTheirOwn(t *testing.T) {
	const serve = "vllm serve acme/Foo-8B --tensor-parallel-size 8"
	bench := func(model, out string) string {
		return "vllm bench serve --model " + model + " --dataset-name random --random-input-len 1000 --random-output-len " + out + " --num-prompts 200"
	}
	block := func(duration float64, out int) string { return blockText(200, duration, 200000, out, 60) }
	for name, c := range map[string]struct {
		parts []string
		want  []string
	}{
		"another length asked": {[]string{onHardware("Chat", "8x H200", serve, bench("acme/Foo-8B", "100"), block(20, 20000)),
			onHardware("Reasoning", "8x H200", serve, bench("acme/Foo-8B", "1000"), block(90, 200000))}, nil},
		"other hardware": {[]string{onHardware("Chat", "8x H200", serve, bench("acme/Foo-8B", "100"), block(20, 20000)),
			onHardware("Again", "8x H100", serve, bench("acme/Foo-8B", "100"), block(30, 20000))}, nil},
		"one hardware": {[]string{onHardware("Chat", "8x H200", serve, bench("acme/Foo-8B", "100"), block(20, 20000)),
			onHardware("Again", "8x H200", serve, bench("acme/Foo-8B", "100"), block(30, 20000))}, []string{"same-setup-differs"}},
		"hardware of its own count": {[]string{onHardware("Chat", "8x H200", serve, bench("acme/Foo-8B", "100"), block(20, 20000)),
			onHardware("Small", "2x H200", strings.Replace(serve, "8B --tensor-parallel-size 8", "4B --tensor-parallel-size 2", 1), bench("acme/Foo-4B", "100"), block(21, 20000))}, nil},
		"too many for its hardware": {[]string{onHardware("Chat", "8x H200", serve, bench("acme/Foo-8B", "100"), block(20, 20000)),
			onHardware("Small", "2x H200", strings.Replace(serve, "Foo-8B", "Foo-4B", 1), bench("acme/Foo-4B", "100"), block(21, 20000))}, []string{"more-devices-than-stated"}},
		"a requirement is no hardware": {[]string{"**Hardware Requirements**\n\n- 4x H200 with TP=4, or a single H200 for the small one\n\n",
			"### Results\n\n```bash\n" + serve + "\n```\n\n" + block(20, 20000)}, nil},
		"a model of one section": {[]string{"```bash\nvllm serve acme/Foo-70B --tensor-parallel-size 8\n```\n\n",
			"## Benchmark\n\n### Speed\n\n- Model: acme/Foo-8B\n\n```bash\n" + serve + "\n```\n\n" + block(20, 20000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := interop.Read("doc.md", []byte("# Notes on a model\n\n## Results\n\n"+strings.Join(c.parts, "\n")))
			var got []string
			for _, x := range Audit([]interop.File{f}, audit.Options{}) {
				if x.Severity != audit.Note {
					got = append(got, x.Type)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}
