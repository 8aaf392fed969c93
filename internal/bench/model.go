package bench

import (
	"context"
	"fmt"

	"perflab/internal/openai"
)

// FirstModel is the first model that the first target serves, for a spec that names
// none. It waits for the server as the run would.
func (b Runner) FirstModel(ctx context.Context) (string, error) {
	c, err := openai.New(b.config(b.Spec.Targets[0]))
	if err != nil {
		return "", err
	}
	defer c.Close()
	b.phase(PhaseWaiting)
	if b.Spec.ReadyTimeout > 0 {
		if err := c.Ready(ctx, b.Spec.ReadyTimeout); err != nil {
			return "", err
		}
	}
	info, err := c.Probe(ctx)
	if err != nil {
		return "", err
	}
	if len(info.Models) == 0 {
		return "", fmt.Errorf("%s/v1/models names no model: give --model", b.Spec.Targets[0])
	}
	return info.Models[0], nil
}
