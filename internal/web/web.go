// Package web is the laboratory as a server: it puts the screens and the API together over one
// store, one queue of launches and one guard, and follows the directories while it serves.
//
//	s, err := web.Open(ctx, web.Options{Roots: []string{"perflab-out"}, Guard: guard.Options{Listen: "127.0.0.1:8790"}})
//	defer s.Close()
//	err = s.Run(ctx, func(address string) { fmt.Println(address) })
//
// Invariants: the directories are the truth, and a server that is killed leaves nothing to mend;
// what it launched goes on without it. Every address stands in routes with the role that it needs.
// A screen is a package below this one, and none of them knows another: they meet in addresses.
//
// Deliberately absent: figures. They are made by result and compare, and kept by store.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/fleet"
	"perflab/internal/store"
	"perflab/internal/web/allow"
	"perflab/internal/web/api"
	"perflab/internal/web/asset"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/hardware"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
)

// Options say what is served, and how.
type Options struct {
	Roots    []string // directories of runs; the first is where launches, imports and pushes go
	DSN      string   // of the index; "": a file below the first root
	State    string   // directory of keys, audit log, uploads and launches; "": .perflab below the first root
	Lab      string   // the name of the laboratory; "": perflab
	Version  string
	Program  string        // perflab, which is started for launches; "": this program
	Env      []string      // of launches; nil: this process's own
	Allow    allow.List    // what launches may use
	AtOnce   int           // launches that run together; 0: one
	ReadOnly bool          // nothing is launched, imported, marked or removed
	Fleet    *fleet.Leader // of machines that send loads together; nil: none
	Reserve  int64         // bytes of the disk that uploads leave free; 0: 1 GiB
	Guard    guard.Options
	Log      *slog.Logger // nil: nothing is logged
}

// Server is the laboratory's server.
type Server struct {
	o        Options
	store    *store.Store
	index    *recall.Index // the store, as lists ask it
	queue    *launch.Queue // nil: read only
	guard    *guard.Guard
	api      *api.API
	pages    *page.Pages
	hardware *hardware.Screen
	fleet    *fleet.Watch // nil: there is none
	handler  http.Handler
	served   []page.Route
	synced   atomic.Int64 // ns that the newest look through the directories took
	log      *slog.Logger
	disk     place.Disk
}

// usualReserve is what stays free of a disk for what is measured.
const usualReserve = 1 << 30

// followEvery is how often the directories are looked through. A look at 10,000 runs that are as
// they were costs a small part of it.
const followEvery = 2 * time.Second

// Open opens the store, the queue and the guard, and looks through the directories once.
func Open(ctx context.Context, o Options) (*Server, error) {
	if len(o.Roots) == 0 {
		return nil, errors.New("a laboratory needs a directory of runs: name one")
	}
	o.State = cmp.Or(o.State, filepath.Join(o.Roots[0], ".perflab", "server"))
	o.Guard.State = cmp.Or(o.Guard.State, o.State)
	s := &Server{o: o, log: o.Log, disk: place.Disk{Keep: cmp.Or(o.Reserve, usualReserve)}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	o.Guard.Log = s.log
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, o Options) (err error) {
	if s.store, err = store.Open(ctx, store.Options{Roots: o.Roots, DSN: o.DSN}); err != nil {
		return err
	}
	s.index = recall.New(s.store)
	o.Guard.Public = append(o.Guard.Public, asset.Root, "/healthz")
	o.Guard.Refused = s.refused
	if s.guard, err = guard.New(o.Guard); err != nil {
		return err
	}
	if !o.ReadOnly {
		q := launch.Options{Program: o.Program, Env: o.Env, Allow: o.Allow, Roots: o.Roots, Results: o.Roots[0], AtOnce: o.AtOnce, Log: s.log}
		if s.queue, err = launch.Open(filepath.Join(o.State, "launches"), q); err != nil {
			return err
		}
	}
	s.pages = page.New(page.Options{Lab: o.Lab, Version: o.Version, Asset: asset.Path, Tokens: !s.guard.Open()})
	s.hardware = hardware.New(hardware.Options{Pages: s.pages, Store: s.store})
	if o.Fleet != nil {
		if s.fleet, err = o.Fleet.Watch(); err != nil {
			return fmt.Errorf("follow the fleet: %w", err)
		}
	}
	s.guard.Meter("perflab_sync_seconds", "How long the newest look through the directories took.", func() float64 { return time.Duration(s.synced.Load()).Seconds() })
	if err := s.sync(ctx); err != nil {
		return fmt.Errorf("look through %s: %w", o.Roots[0], err)
	}
	a := api.Options{Store: s.index, Queue: s.queue, Guard: s.guard, Roots: o.Roots, Version: o.Version, ReadOnly: o.ReadOnly, Disk: &s.disk, Log: s.log}
	if s.api, err = api.New(a); err != nil {
		return err
	}
	if s.served, err = s.routes(); err != nil {
		return err
	}
	s.handler = s.guard.Handler(s.mux(s.served))
	s.guard.HandleShared(s.mux(shared(s.served)))
	return nil
}

// Close ends what the server holds open. What it launched goes on.
func (s *Server) Close() error {
	var errs []error
	if s.hardware != nil {
		s.hardware.Close()
	}
	if s.fleet != nil {
		s.fleet.Close()
	}
	if s.queue != nil {
		s.queue.Close()
	}
	if s.guard != nil {
		errs = append(errs, s.guard.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// Handler serves the laboratory to who comes through the guard.
func (s *Server) Handler() http.Handler { return s.handler }

// Routes are the addresses that are served.
func (s *Server) Routes() []page.Route { return s.served }

// Guard is the server's, for what a terminal says of it.
func (s *Server) Guard() *guard.Guard { return s.guard }

// Queue is the server's launches; nil where it only reads.
func (s *Server) Queue() *launch.Queue { return s.queue }

// Going is how many launches are under way: they go on without the server.
func (s *Server) Going() (n int) {
	if s.queue == nil {
		return 0
	}
	for _, l := range s.queue.List() {
		if l.State == launch.Running {
			n++
		}
	}
	return n
}

// Notes are what of the laboratory is not as it was asked for, a sentence each.
func (s *Server) Notes() []string {
	notes := slices.Clone(s.store.Info().Notes)
	if s.queue != nil {
		if err := s.queue.ReadOnly(); err != nil {
			notes = append(notes, err.Error())
		}
	}
	return notes
}

// Store is the server's index.
func (s *Server) Store() *store.Store { return s.store }

// Run serves until the context ends, and follows the directories. told is called with the
// address once the server can be reached.
func (s *Server) Run(ctx context.Context, told func(address string)) error {
	l, err := s.guard.Listen()
	if err != nil {
		return err
	}
	scheme := "http"
	if s.guard.Fingerprint() != "" || s.o.Guard.Certificate != "" {
		scheme = "https"
	}
	told(scheme + "://" + l.Addr().String())
	following, end := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { s.follow(following) })
	err = s.guard.Serve(ctx, l, s.handler)
	end()
	wait.Wait()
	return err
}

// follow looks through the directories again and again. What fails is said once, until it
// works again.
func (s *Server) follow(ctx context.Context) {
	every := time.NewTicker(followEvery)
	defer every.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		err := s.sync(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failed = ""
		case err.Error() != failed:
			failed = err.Error()
			s.log.Error("the directories cannot be followed", "error", err)
		}
	}
}

// sync looks through the directories once.
func (s *Server) sync(ctx context.Context) error {
	began := time.Now()
	_, err := s.store.Sync(ctx)
	s.synced.Store(int64(time.Since(began)))
	return err
}

// mux serves routes, each to who has its role.
func (s *Server) mux(routes []page.Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		h := s.pages.Handler(r)
		if r.Stream {
			h = s.guard.Stream(h)
		}
		h = s.guard.Body(r.Limit, h)
		if !r.Open {
			h = s.guard.Need(r.Role, h)
		}
		mux.Handle(r.Pattern, h)
	}
	return mux
}

// shared are the routes that share links open.
func shared(routes []page.Route) []page.Route {
	var out []page.Route
	for _, r := range routes {
		if r.Shared {
			r.Role = guard.Shared
			out = append(out, r)
		}
	}
	return out
}

// refused answers what the guard refuses.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, status int, why string) {
	s.pages.Fail(w, r, &page.Problem{Status: status, Text: why})
}
