package cli

import "context"

// within does work that has no context of its own. Interrupted, it is left to
// end with the process.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1) // so that work that nobody waits for ends
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
