package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/outcome"
	"perflab/internal/study"
)

// Engines are dealt what the environment shows perflab, and nothing beside it: what else the
// machine has is other people's.
func TestDealtFromThePool(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "4,GPU-5a1c")
	o, err := failing(t, strings.Replace(twoEngines, "gpus: 1", "gpus: 2", 1))
	if err != nil || o.trial.Status != "ok" {
		t.Fatalf("%v, trial is %s: %s", err, o.trial.Status, o.trial.Reason)
	}
	var saw []string
	entries, err := os.ReadDir(o.pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		saw = append(saw, readFile(t, filepath.Join(o.pids, e.Name())))
	}
	slices.Sort(saw)
	if pool := []string{"4", "GPU-5a1c"}; !slices.Equal(saw, pool) || !slices.Equal(o.study.Devices, pool) {
		t.Errorf("engines saw %q, and the study was dealt %q", saw, o.study.Devices)
	}
}

// What a study needs beyond the pool is refused before there is anything.
func TestBeyondThePool(t *testing.T) {
	for _, tt := range []struct{ shown, hardware, wrong string }{
		{"4,5", "gpus: 3", "hardware of the study: CUDA_VISIBLE_DEVICES of the environment shows devices 4, 5, and 3 are needed: show more, or ask for fewer"},
		{"", "gpus: 1", "hardware of the study: CUDA_VISIBLE_DEVICES of the environment shows no device, and 1 is needed: show more, or ask for fewer"},
		{"4,5", "gpus: 1, devices: [0]", "hardware of the study: device 0 is wanted, and CUDA_VISIBLE_DEVICES of the environment shows devices 4, 5: name one of those, or change the variable"},
		{"4,all", "gpus: 1", `CUDA_VISIBLE_DEVICES=4,all of the environment: "all" names no device: write its index, or its UUID (GPU-..., MIG-...)`},
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", tt.shown)
		text := strings.Replace(strings.Replace(twoEngines, "gpus: 1", tt.hardware, 1), "ENV", "A=b", 1)
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := Tune(t.Context(), s, []byte(text), Options{Dir: dir, grace: time.Second, fence: deploy.AnyFence}); err == nil || err.Error() != tt.wrong {
			t.Errorf("%s of %s: %v", tt.hardware, tt.shown, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a directory was made", tt.hardware)
		}
	}
}

// A study that goes on with other devices says which trials had which.
func TestOtherDevices(t *testing.T) {
	trial := func(id int, devices ...string) trialRecord {
		return trialRecord{Trial: outcome.Trial{ID: id}, Devices: devices}
	}
	trials := []trialRecord{trial(1), trial(2), trial(3, "4", "5"), trial(4, "4", "5"), trial(5)}
	got := changedDevices(trials)
	want := "The study went on with other devices (the machine's first from trial 1; 4, 5 from trial 3; the machine's first from trial 5): differences between its trials may be of that."
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
	if got := changedDevices(trials[:2]); got != nil {
		t.Errorf("nothing changed, and yet %q", got)
	}
}
