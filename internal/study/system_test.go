package study

import "testing"

func TestStartable(t *testing.T) {
	for _, c := range []struct {
		system, kind string
		refused      bool
	}{
		{"linux", "process", false}, {"darwin", "ssh", false}, {"windows", "process", true}, {"windows", "ssh", true}, {"windows", "simulated", true},
		{"windows", "docker", false}, {"windows", "existing", false}, {"windows", "predicted", false},
	} {
		if err := Startable(c.system, c.kind); (err != nil) != c.refused {
			t.Errorf("%s on %s: %v", c.kind, c.system, err)
		}
	}
}
