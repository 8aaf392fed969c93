package kube

import (
	"context"
	"strings"
)

// Check looks whether the Service can be measured, and changes nothing: no request is sent to it.
func (s *Service) Check(ctx context.Context) []Finding {
	k := &checker{}
	look := *s
	look.Progress = nil
	settings := s.Settings
	if namespace, _, ok := strings.Cut(s.Name, "/"); ok {
		settings.Namespace = namespace
	}
	c, err := connect(settings)
	if err != nil {
		k.bad(CheckAPI, "correct kubeconfig, context or KUBECONFIG", "%s", sentence(err.Error()))
		return k.out
	}
	defer c.close()
	if k.cluster = c; !k.api(ctx) {
		return k.out
	}
	d, err := look.find(ctx)
	if err != nil {
		k.fail(CheckOfService, "reach the Service "+s.Name, err)
		return k.out
	}
	defer func() { _ = d.Stop(ctx) }() // it never fails
	if d.object != nil {
		k.good(CheckOfService, "the Service %s is there, and its port %d leads to %s", d.full(), d.port.Port, pods(len(d.members)))
	}
	for _, m := range d.members {
		k.good(CheckPods, "%s, container %s at port %d%s", describePod(m.Pod), m.container, m.port, gpusText(m.gpus))
	}
	d.Progress = func(text string) { k.good(CheckPath, "%s", text) }
	err = d.choose(ctx)
	if err != nil {
		k.fail(CheckPath, "reach the Service "+s.Name, err)
	} else {
		d.meter(ctx)
	}
	if len(d.lacks) == 0 {
		k.good(CheckRights, "the account has the rights that are needed in the namespace %s", d.namespace)
	}
	for _, text := range d.lacks {
		k.good(CheckRights, "%s", text)
	}
	return k.out
}

func gpusText(uuids []string) string {
	if len(uuids) == 0 {
		return ""
	}
	return ", with " + strings.Join(uuids, ", ")
}
