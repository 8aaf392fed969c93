package plan

import (
	"fmt"

	"github.com/spf13/pflag"

	"perflab/internal/engine"
	"perflab/internal/engine/shellwords"
)

// poolFlags take the engines of a command apart into prefill and decode engines.
type poolFlags struct{ pools, prefill, decode, router string }

var poolFlagNames = []string{"disaggregation", "prefill-flags", "decode-flags", "router-flags"}

func (f *poolFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.pools, poolFlagNames[0], "", "P:D, such as 2:1: the command is that of P prefill and D decode engines behind a router; vLLM and SGLang")
	fs.StringVar(&f.prefill, poolFlagNames[1], "", "further flags of prefill engines, in one word: '-tp 2 --max-num-batched-tokens 16384'")
	fs.StringVar(&f.decode, poolFlagNames[2], "", "further flags of decode engines, in one word")
	fs.StringVar(&f.router, poolFlagNames[3], "", "further flags of the router before them, in one word")
}

// apply is the command with its engines in pools, where flags say so.
func (f *poolFlags) apply(cmd engine.Command) (engine.Command, error) {
	var words [3][]string
	for i, text := range []string{f.prefill, f.decode, f.router} {
		var err error
		if words[i], err = shellwords.Split(text); err != nil {
			return cmd, fmt.Errorf("--%s: %w", poolFlagNames[i+1], err)
		}
	}
	return cmd.Apart(f.pools, words[0], words[1], words[2])
}
