package lab

import (
	"context"
	"fmt"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/redact"
	"perflab/internal/result"
	"perflab/internal/study"
)

// cluster holds the cluster against what the study's launches need, before the first one.
func (l *launcher) cluster(ctx context.Context) (wrong []error, err error) {
	if l.Hardware.Check == study.CheckOff {
		l.ground.note("The cluster was not looked at, as the study wants it: what is said of its hardware is what the study says.")
		return nil, nil
	}
	spec, engineName, err := l.first()
	if err != nil {
		return nil, err
	}
	findings, err := kube.Check(ctx, l.Cluster(engineName), spec)
	if err != nil {
		return nil, err
	}
	for _, f := range findings {
		switch text := redact.Text(redact.Plain(f.Text)); {
		case !f.OK && f.Help != "":
			wrong = append(wrong, fmt.Errorf("%s: %s", text, f.Help))
		case !f.OK:
			wrong = append(wrong, fmt.Errorf("%s", text))
		case f.Check == kube.CheckAPI || f.Check == kube.CheckNodes:
			l.ground.note("Found in the cluster: %s.", text)
		}
	}
	return wrong, nil
}

// first is the deployment of the configuration that a study launches first.
func (l *launcher) first() (spec deploy.Spec, engineName string, err error) {
	listed, err := l.Configurations()
	if err != nil {
		return spec, "", err
	}
	for _, c := range listed {
		if c.Refused != nil {
			continue
		}
		places, _, err := l.places(context.Background(), c.Configuration)
		if err != nil {
			return spec, "", err
		}
		cmd := keyInEnv(c.Command)
		cmd.Host = "{host}"
		spec.Name = c.Label
		spec.Replicas, err = l.replicas(cmd, places)
		return spec, c.Command.Engine, err
	}
	return spec, "", nil
}

// CheckCluster holds a cluster against what a study needs of it, and launches nothing.
func CheckCluster(ctx context.Context, s *study.Study) ([]kube.Finding, error) {
	if target, ok := s.ServiceTarget(); ok {
		return target.Check(ctx), context.Cause(ctx)
	}
	l := newSession(s, Options{}).engines
	defer l.release()
	var err error
	if l.ground.pool, err = l.Pool(false, nil); err != nil {
		return nil, err
	}
	spec, engineName, err := l.first()
	if err != nil {
		return nil, err
	}
	return kube.Check(ctx, l.Cluster(engineName), spec)
}

// podsOf are the pods of a deployment, none where it has none.
func podsOf(ctx context.Context, d deploy.Deployment) []result.Pod {
	p, ok := d.(interface {
		Places(context.Context) []kube.Place
	})
	if !ok {
		return nil
	}
	var out []result.Pod
	for _, at := range p.Places(ctx) {
		out = append(out, result.Pod{Replica: at.Replica, Name: at.Pod, UID: at.UID, Node: at.Node, Image: at.Image, GPUs: at.GPUs, Forwarded: at.Forward, Metrics: at.Metrics})
	}
	return out
}

// serviceOf is the Service that a deployment is, nil where it is none.
func serviceOf(d deploy.Deployment) *result.Service {
	at, ok := d.(kube.Attached)
	if !ok {
		return nil
	}
	s := at.Served()
	return &result.Service{Name: s.Name, UID: s.UID, Port: s.Port, Reach: s.Reach, Lacks: s.Lacks}
}

// service takes note of the Service that was found: of how many pods it is, and what is not known of it.
func (ev *evaluation) service(d deploy.Deployment) {
	s := serviceOf(d)
	if s == nil {
		return
	}
	ev.t.Replicas = max(len(ev.t.Pods), 1)
	for _, text := range s.Lacks {
		ev.t.note("%s.", strings.ToUpper(text[:1])+text[1:])
	}
}

// Service is a Service of a cluster that others run, found for a bench.
type Service struct {
	deploy.Deployment
	Header *result.Service
	Pods   []result.Pod
	Meters []bench.Meter
}

// FindService finds a Service and its pods, and returns when it answers. Stop gives up what that opened.
func FindService(ctx context.Context, s *kube.Service) (*Service, error) {
	d, err := s.Start(ctx, deploy.Spec{Name: s.Name})
	if err != nil {
		return nil, err
	}
	return &Service{d, serviceOf(d), podsOf(ctx, d), meters(d)}, nil
}

// Watched is a context that ends when the Service's pods change, with that as its cause.
func (s *Service) Watched(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-s.Done():
			cancel(s.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watching
	}
}
