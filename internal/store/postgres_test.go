package store_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

func TestPostgres(t *testing.T) {
	server := storetest.StartPostgres(t)
	storetest.Suite(t, func(t *testing.T) storetest.Opener {
		dsn := server.Database(t)
		return func(t *testing.T, roots ...string) *store.Store {
			return open(t, store.Options{Roots: roots, DSN: dsn})
		}
	})
}

// TestPostgresGoneAndBack: while the server is gone there are errors that say so, and none has to
// start anew when it is back.
func TestPostgresGoneAndBack(t *testing.T) {
	server := storetest.StartPostgres(t)
	root := t.TempDir()
	storetest.Run{N: 1}.Write(t, root, "a")
	s := open(t, store.Options{Roots: []string{root}, DSN: server.Database(t)})
	storetest.Sync(t, s)
	server.Stop(t)
	storetest.Run{N: 2}.Write(t, root, "b")
	for _, attempt := range []func() error{
		func() error { _, err := s.List(t.Context(), store.Query{}); return err },
		func() error { _, err := s.Sync(t.Context()); return err },
	} {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), "the index postgres://") || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%v", err)
		} else if _, ok := errors.AsType[*store.UnreachableError](err); !ok || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%T %v", err, err)
		}
	}
	server.Start(t)
	var err error
	for range 10 { // each connection that was open fails once
		if _, err = s.Sync(t.Context()); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err = s.List(t.Context(), store.Query{}); err == nil {
			break
		}
	}
	if p := storetest.List(t, s, store.Query{}); p.Total != 2 {
		t.Errorf("%d entries", p.Total)
	}
}

// TestPostgresMachines: two machines with directories of their own share an index, and each
// follows its own.
func TestPostgresMachines(t *testing.T) {
	server := storetest.StartPostgres(t)
	dsn := server.Database(t)
	var all []*store.Store
	for i, host := range []string{"one", "two"} {
		root := t.TempDir()
		storetest.Run{N: i}.Write(t, root, "on-"+host)
		storetest.Run{N: 7}.Write(t, root, "both")
		all = append(all, open(t, store.Options{Roots: []string{root}, DSN: dsn, Host: host}))
	}
	for range 2 {
		for _, s := range all {
			storetest.Sync(t, s)
		}
	}
	p := storetest.List(t, all[0], store.Query{Order: "name"})
	if got := strings.Join(storetest.Names(p), " "); got != "both on-one on-two" {
		t.Fatal(got)
	}
	if e := p.Entries[2]; e.Dir() != "" || e.Places[0].Host != "two" {
		t.Errorf("%+v", e.Places)
	}
	if e := p.Entries[0]; len(e.Places) != 2 || e.Dir() == "" {
		t.Errorf("%+v", e.Places)
	}
	if _, err := all[0].Remove(t.Context(), "ada", "on-two"); err == nil || !strings.Contains(err.Error(), "of two") {
		t.Errorf("removed: %v", err)
	}
	if _, err := all[0].Remove(t.Context(), "ada", "both"); err != nil {
		t.Error(err)
	}
	if e, err := all[1].Get(t.Context(), "both"); err != nil || len(e.Places) != 1 {
		t.Errorf("%+v, %v", e.Places, err)
	}
}
