package store

import "context"

// Forget empties the index of what it knows of our directories: the next Sync makes it anew. Marks are
// not in it, and stay.
func (s *Store) Forget(ctx context.Context) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	w, err := s.begin(ctx)
	if err != nil {
		return s.failed("write to the index", err)
	}
	defer w.tx.Rollback()
	for _, root := range s.roots() {
		if err := w.exec(ctx, "DELETE FROM places WHERE root=?", root); err != nil {
			return s.failed("write to the index", err)
		}
	}
	if err := w.sweep(ctx); err != nil {
		return s.failed("write to the index", err)
	}
	s.last, s.marks.applied = nil, false
	if err := w.tx.Commit(); err != nil {
		return s.failed("write to the index", err)
	}
	s.changed.tell(w.version)
	return nil
}
