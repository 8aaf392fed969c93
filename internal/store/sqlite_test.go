package store_test

import (
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

func TestSQLite(t *testing.T) {
	storetest.Suite(t, func(*testing.T) storetest.Opener {
		return func(t *testing.T, roots ...string) *store.Store { return open(t, store.Options{Roots: roots}) }
	})
}

func TestElsewhere(t *testing.T) {
	storetest.Suite(t, func(t *testing.T) storetest.Opener {
		dir := t.TempDir()
		return func(t *testing.T, roots ...string) *store.Store {
			return open(t, store.Options{Roots: roots, Dir: dir})
		}
	})
}

// open opens an index until the test ends.
func open(t testing.TB, opt store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
