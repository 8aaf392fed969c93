package cli

import (
	"github.com/spf13/pflag"

	"perflab/internal/workload"
)

// addShapeFlags are the flags of a load that is bounded by time.
func addShapeFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringVar(&w.Steps, "steps", "", "rates one after another, RATE:TIME,... such as 2:30s,8:60s,2:30s, in place of --request-rate; a rate of 0 is a pause")
	fs.StringVar((*string)(&w.Duration), "duration", "", "no request is due from then on, such as 60s; with --max-concurrency and no rate: send for this long")
}

// addTurnFlags are the flags of conversations, adapters and images.
func addTurnFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringVar((*string)(&w.Turns), "turns", "", "conversations: turns of each, 4 or 2-6 (default 4; of a file: conversations with fewer are left out, longer ones are cut)")
	fs.StringVar((*string)(&w.TurnInputLen), "turn-input-len", "", "conversations that are made up: tokens of a question, 128 or 64-256 (default 128)")
	fs.StringVar((*string)(&w.TurnOutputLen), "turn-output-len", "", "conversations: tokens of an answer, 128 or 64-256 (default 128; of a file: its answers' own length)")
	fs.IntVar(&w.SystemLen, "system-len", 0, "conversations that are made up: tokens of a system prompt that all share")
	fs.StringVar(&w.ThinkTime, "think-time", "", "conversations: mean time from an answer to the next question, exponential, such as 2s; constant:2s is always that")
	fs.StringVar(&w.History, "history", "", "conversations: what stands for earlier answers, generated (the server's own) or answers (the dataset's; default of a file)")
	fs.BoolVar(&w.NoSessionAffinity, "no-session-affinity", false, "conversations: choose an endpoint anew for each turn; replicas then miss the prefixes that another one has cached")
	fs.StringSliceVar(&w.LoraModules, "lora-modules", nil, "names of LoRA adapters, a,b,c, sent as the model in place of --model")
	fs.StringVar(&w.LoraAssignment, "lora-assignment", "", "random or round-robin: which request gets which adapter (default random)")
	fs.IntVar(&w.RandomImages, "random-images", 0, "random, conversations: made-up images in each request")
	fs.StringVar(&w.RandomImageSize, "random-image-size", "", "size of --random-images in pixels, 512x512 or 256x256-1024x1024 (default 512x512)")
}
