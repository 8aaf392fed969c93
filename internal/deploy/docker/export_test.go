package docker

import "time"

// Hurry shortens how long a daemon, or a keeper, that does not answer is waited for.
func (r *Runtime) Hurry(patience, silence time.Duration) error {
	e, err := r.connect("test")
	if err == nil {
		e.patience, e.silence = patience, silence
	}
	return err
}
