package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRealEngine drives a real llama-server, which is no part of this repository:
// PERFLAB_LLAMA_SERVER names its binary, PERFLAB_LLAMA_MODEL a GGUF file
// (scripts/make-gguf.py makes one).
func TestRealEngine(t *testing.T) {
	server, model := os.Getenv("PERFLAB_LLAMA_SERVER"), os.Getenv("PERFLAB_LLAMA_MODEL")
	if server == "" || model == "" {
		t.Skip("PERFLAB_LLAMA_SERVER (the path of llama-server) and PERFLAB_LLAMA_MODEL (that of a GGUF file) are not set")
	}
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/real",
		Cmds: commands,
		Setup: func(env *testscript.Env) error {
			bin := filepath.Join(env.WorkDir, "engine")
			if err := os.Mkdir(bin, 0o755); err != nil {
				return err
			}
			for to, from := range map[string]string{filepath.Join(bin, "llama-server"): server, filepath.Join(env.WorkDir, "model.gguf"): model} {
				from, err := filepath.Abs(from)
				if err != nil {
					return err
				}
				if err := os.Symlink(from, to); err != nil {
					return err
				}
			}
			env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+bin)
			return nil
		},
	})
}
