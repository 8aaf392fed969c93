package deploy_test

import (
	"io"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// What a command costs through a connection that stands, and what one costs with a
// connection of its own.
func BenchmarkSSHCommand(b *testing.B) {
	s := startSSHD(b, "127.0.0.1")
	r := s.runtime(b)
	b.Run("shared", func(b *testing.B) {
		for b.Loop() {
			if err := r.Command(b.Context(), "", []string{"true"}, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			r := quickSSH(s.config)
			if err := r.Command(b.Context(), "", []string{"true"}, io.Discard); err != nil {
				b.Fatal(err)
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if err := quick().Command(b.Context(), "", []string{"true"}, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What the runtime adds to the start and stop of an engine that takes 30 ms to be
// ready.
func BenchmarkSSHStart(b *testing.B) {
	s := startSSHD(b, "127.0.0.1")
	r := s.runtime(b)
	for _, c := range []struct {
		name  string
		start func() error
	}{
		{"ssh", func() error {
			d, err := r.Start(b.Context(), deploytest.Spec(b, deploytest.Ready))
			if err == nil {
				err = d.Stop(b.Context())
			}
			return err
		}},
		{"process", func() error {
			d, err := quick().Start(b.Context(), deploytest.Spec(b, deploytest.Ready))
			if err == nil {
				err = d.Stop(b.Context())
			}
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.start(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a request costs through a forwarded port.
func BenchmarkSSHForward(b *testing.B) {
	s := startSSHD(b, "127.0.0.1")
	r := s.runtime(b)
	direct := s.runtime(b)
	direct.Direct = true
	for name, r := range map[string]deploy.Runtime{"forward": r, "direct": direct} {
		b.Run(name, func(b *testing.B) {
			d, err := r.Start(b.Context(), deploytest.Spec(b, deploytest.Ready))
			if err != nil {
				b.Fatal(err)
			}
			defer d.Stop(b.Context())
			time.Sleep(50 * time.Millisecond)
			for b.Loop() {
				deploytest.Get(b.Context(), d.Targets()[0]+"/health")
			}
		})
	}
}
