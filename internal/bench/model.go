package bench

import (
	"context"
	"fmt"
)

// FirstModel is the first model that the first target serves, for a spec that names
// none. It waits for the server as the run would.
func (b Runner) FirstModel(ctx context.Context) (string, error) {
	b.phase(PhaseWaiting)
	c, err := b.await(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	info, err := c.Probe(ctx)
	if err != nil {
		return "", err
	}
	if len(info.Models) == 0 {
		return "", fmt.Errorf("%s/v1/models names no model: give --model", b.Spec.Targets[0])
	}
	return info.Models[0], nil
}
