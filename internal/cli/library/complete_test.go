package library

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

// TestComplete: shells are told facts, the values that there are, and IDs with what each is.
func TestComplete(t *testing.T) {
	root := t.TempDir()
	storetest.Run{Command: "vllm serve Qwen/Qwen3-8B -tp 2"}.Write(t, root, "one")
	s, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Sync(t, s)
	id := storetest.List(t, s, store.Query{}).Entries[0].ID
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	env := console.Env{Getenv: func(name string) string { return map[string]string{dirVariable: root}[name] }}
	var p place
	for _, tt := range []struct {
		by    cobra.CompletionFunc
		typed string
		want  string
	}{
		{p.expressions(env), "engi", "engine=\tvllm, sglang, trtllm, llamacpp"},
		{p.expressions(env), "engine=v", "engine=vllm"},
		{p.expressions(env), "kind=st", "kind=study"},
		{p.expressions(env), "simulated=", "simulated=true"},
		{p.entries(env), id[:4], id[:10] + "\trun one"},
		{listOf(metricNames), "p99_ttft_ms,-p99_tpo", "p99_ttft_ms,-p99_tpot_ms"},
		{listOf(kindNames), "run,st", "run,study"},
	} {
		if got, _ := tt.by(&cobra.Command{}, nil, tt.typed); !slices.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.typed, got, tt.want)
		}
	}
	if got, directive := p.entries(console.Env{})(&cobra.Command{}, nil, "x"); len(got) > 0 || directive != cobra.ShellCompDirectiveFilterDirs {
		t.Errorf("without directories: %q, %d", got, directive)
	}
}
