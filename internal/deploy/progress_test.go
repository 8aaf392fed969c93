package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine/logs"
)

// TestSilence: what an engine prints decides how long is waited for it.
func TestSilence(t *testing.T) {
	const shard = "Loading safetensors checkpoint shards: %3d%% Completed | %d/25\r"
	for _, c := range []struct {
		name   string
		print  func(minute int) string
		late   LateError     // as which the start ends
		after  time.Duration // 0: it does not in three hours
		phases []string
	}{
		{name: "prints nothing", print: func(int) string { return "" }, late: LateError{Limit: 15 * time.Minute, Silence: true}, after: 15 * time.Minute},
		{name: "loads for ever", print: func(m int) string { return fmt.Sprintf(shard, m, m) },
			late: LateError{Limit: 2 * time.Hour, Phase: "loading weights"}, after: 2 * time.Hour, phases: []string{"loading weights"}},
		{name: "stops at a shard", print: func(m int) string { return fmt.Sprintf(shard, min(m, 5), min(m, 5)) },
			late: LateError{Limit: 15 * time.Minute, Silence: true, Phase: "loading weights"}, after: 20 * time.Minute, phases: []string{"loading weights"}},
		{name: "says for how long it has waited", print: func(m int) string {
			return fmt.Sprintf("INFO 11-21 00:%02d:00 No available shared memory broadcast block found in %d seconds.\n", m, 60*m)
		}, late: LateError{Limit: 15 * time.Minute, Silence: true}, after: 15 * time.Minute},
		{name: "loads, then compiles", print: func(m int) string {
			if m < 14 {
				return fmt.Sprintf(shard, m, m)
			}
			return map[int]string{14: "torch.compile takes 1 s\n", 28: "Capturing CUDA graphs: 3%\r"}[m]
		}, late: LateError{Limit: 15 * time.Minute, Silence: true, Phase: "capturing graphs"}, after: 43 * time.Minute, phases: []string{"loading weights", "compiling", "capturing graphs"}},
		{name: "prints dots", print: func(m int) string { return "." }, late: LateError{Limit: 2 * time.Hour, Phase: "loading weights"}, after: 2 * time.Hour, phases: []string{"loading weights"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				path := filepath.Join(t.TempDir(), "replica-0.log")
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				var phases []string
				engineName := "vllm"
				if c.name == "prints dots" {
					engineName = "llamacpp"
				}
				d := newDeployment(Launcher{}, "start", Spec{
					Phase:    func(line string) (string, bool) { return logs.Phase(engineName, line) },
					Progress: func(phase string) { phases = append(phases, phase) },
				})
				d.members = []*member{{name: "replica 0", log: &memberLog{path: path}}}
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				go func() {
					for m := 0; ctx.Err() == nil; m++ {
						f.WriteString(c.print(m))
						select {
						case <-time.After(time.Minute):
						case <-ctx.Done():
						}
					}
				}()
				d.watchStart(ctx, began.Add(StartTimeout), end)
				late, ok := errors.AsType[*LateError](context.Cause(ctx))
				if !ok || *late != c.late {
					t.Errorf("ends by %v, want %v", context.Cause(ctx), &c.late)
				}
				if took := time.Since(began).Round(time.Minute); took != c.after {
					t.Errorf("ends after %v, want %v", took, c.after)
				}
				if diff := cmp.Diff(c.phases, phases); diff != "" {
					t.Errorf("phases (-want +got):\n%s", diff)
				}
			})
		})
	}
}
