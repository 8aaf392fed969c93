package kube

import "time"

// Patience is how long the runtime waits for pods that are to end, after their grace.
func (r *Runtime) Patience(d time.Duration) error {
	c, err := r.connect("set up")
	if err == nil {
		c.patience = d
	}
	return err
}

// ExpiredAfter is how long after its last renewal a deployment counts as left behind.
const ExpiredAfter = leaseTime + leaseSlack
