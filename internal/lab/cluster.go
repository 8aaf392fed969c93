package lab

import (
	"context"
	"fmt"

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
		out = append(out, result.Pod{Replica: at.Replica, Name: at.Pod, UID: at.UID, Node: at.Node, Image: at.Image, GPUs: at.GPUs, Forwarded: at.Forward})
	}
	return out
}
