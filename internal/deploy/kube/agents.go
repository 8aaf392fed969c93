package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"perflab/internal/deploy"
	"perflab/internal/field"
)

// Agents are perflabs in pods beside the engines, which send load from there: an Indexed Job of perflab agent.
type Agents struct {
	Number int    `yaml:"agents" json:"agents" jsonschema:"required,minimum=1,description=How many pods send the load together"`
	Image  string `yaml:"image" json:"image" jsonschema:"required,description=Image of perflab\\, of the version that leads"`
	Hub    string `yaml:"hub,omitempty" json:"hub,omitempty" jsonschema:"description=Name or address by which pods reach the fleet's hub (default: the one by which it knows itself)"`
	Keys   string `yaml:"keys,omitempty" json:"keys,omitempty" jsonschema:"description=Where an outside NATS server is the hub: Secret with a key for each agent (agent-0.nk\\, agent-1.nk ...\\, of perflab fleet accounts) and the server's ca.crt"`
	CPU    string `yaml:"cpu,omitempty" json:"cpu,omitempty" jsonschema:"description=CPUs of each\\, requests and limits alike (default 2)"`
	Memory string `yaml:"memory,omitempty" json:"memory,omitempty" jsonschema:"description=Memory of each (default 2Gi)"`
}

const mostAgents = 1000

// Validate says what keeps agents from being started, an error with its path for each fault.
func (a Agents) Validate() error {
	var errs []error
	if a.Number < 1 || a.Number > mostAgents {
		errs = append(errs, field.Errorf("agents", "%d must be from 1 to %d", a.Number, mostAgents))
	}
	if a.Image == "" {
		errs = append(errs, field.Errorf("image", "name an image that has perflab, of the version that leads"))
	}
	return errors.Join(errs...)
}

// Joining is how agents become members of a fleet.
type Joining struct {
	URLs   []string // an invitation for each agent, or:
	Server string   // address of an outside NATS server, tls://host:4222
}

const (
	agentName      = "perflab-agent"
	agentContainer = "agent"
	agentGrace     = 5 // seconds that it has to end

	// LabelJob is the label by which the agents of a Job are chosen in the fleet.
	LabelJob = "job"
)

// Loaders are agents in pods that run, until Stop.
type Loaders struct {
	*owner
	number int
}

// StartAgents starts agents and returns when all of their pods run; that they have joined the fleet, the fleet
// tells. What pods wait for is told meanwhile. The value of an invitation is in a Secret that goes with the agents.
func StartAgents(ctx context.Context, s Settings, a Agents, j Joining, tell func(string)) (_ *Loaders, err error) {
	op := "start load agents in pods"
	if err := a.Validate(); err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct what is said of agents", Lasting: true}
	}
	c, err := open(op, s)
	if err != nil {
		return nil, err
	}
	l := &Loaders{number: a.Number}
	if l.owner, err = c.own(ctx, ownerName("="+rand.Text()), holder()); err != nil {
		c.close()
		return nil, c.explain(op+": create a Lease", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(orCause(ctx, err), l.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, object := range a.objects(l.name, j) {
		l.adopt(object)
		if pod, ok := object["spec"].(map[string]any); ok {
			mapping(pod, "template", "metadata", "labels")[labelName] = agentName // what keeps away from engines is none
		}
		if _, err := l.apply(ctx, object); err != nil {
			return nil, l.explain(fmt.Sprintf("%s: apply the %v %s", op, object["kind"], l.name), err)
		}
	}
	if err := l.await(ctx, op, news(tell)); err != nil {
		return nil, err
	}
	return l, nil
}

// Name is that of the agents' Job, and the value of their label LabelJob.
func (l *Loaders) Name() string { return l.name }

// Stop removes the agents, and waits until their pods are gone.
func (l *Loaders) Stop(ctx context.Context) error {
	defer l.close()
	l.release()
	ctx, cancel := context.WithTimeout(ctx, 2*goneWait)
	defer cancel()
	if _, err := l.cluster.end(ctx, l.name); err != nil {
		return l.explain("remove the load agents "+l.name, err)
	}
	return nil
}

// Ended says why an agent has ended, nil as long as all run: after its pod began it may not get into the fleet.
func (l *Loaders) Ended(ctx context.Context) error {
	if _, _, err := l.running(ctx); err != nil && !passing(err) {
		return l.explain("look at the load agents "+l.name, err)
	}
	return nil
}

// await returns when all pods run.
func (l *Loaders) await(ctx context.Context, op string, tell func(string)) error {
	wait := l.Pending()
	if wait == 0 {
		wait = math.MaxInt64
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		running, why, err := l.running(ctx)
		switch {
		case err != nil && passing(err): // as long as nothing is known nothing has gone wrong
		case err != nil:
			return l.explain(op, err)
		case running == l.number:
			return nil
		case why != "":
			tell(fmt.Sprintf("%d of %d load agents run; %s", running, l.number, why))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			return &deploy.InfraError{
				Op: op, Err: fmt.Errorf("%d of %d pods run after %v: %s", running, l.number, wait, cmp.Or(why, "the others were not made")),
				Help: "ask for fewer agents or less of cpu and memory, or raise pending_timeout_s",
			}
		case <-time.After(pause):
		}
	}
}

// running is how many pods run, and what one of the others waits for.
func (l *Loaders) running(ctx context.Context) (n int, why string, err error) {
	list, err := l.podsOf(ctx, l.name)
	if err != nil {
		return 0, "", err
	}
	for _, u := range list {
		var p corev1.Pod
		if err := into(&u, &p); err != nil {
			return n, why, err
		}
		switch s := standingOf(&p, []string{agentContainer}); {
		case s.bad != nil:
			return n, why, s.bad
		case s.stage < begun:
			why = describePod(&p) + ": " + s.why
		case p.Status.Phase == corev1.PodRunning:
			n++
		default:
			return n, why, &deploy.InfraError{
				Op: "start load agents in pods", Err: fmt.Errorf("%s has ended: %s", describePod(&p), l.lastWords(ctx, p.Name)),
				Help: "see whether pods reach the hub by the name in hub, and whether the image has this version of perflab",
			}
		}
	}
	return n, why, nil
}

// lastWords are the end of what an agent said.
func (l *Loaders) lastWords(ctx context.Context, pod string) string {
	lines := int64(1)
	b, err := l.core.Get().Namespace(l.namespace).Resource("pods").Name(pod).SubResource("log").
		Param("container", agentContainer).Param("tailLines", strconv.FormatInt(lines, 10)).Do(ctx).Raw()
	if err != nil || len(b) == 0 {
		return "it said nothing"
	}
	return sentence(string(b))
}

// objects are the Secret of the invitations, where there are some, and the Job.
func (a Agents) objects(name string, j Joining) []map[string]any {
	argv := []any{"perflab", "agent", "--name", "$(POD_NAME)", "--label", LabelJob + "=" + name, "--dir", "/agent"}
	secret := name
	var out []map[string]any
	if j.Server != "" {
		secret = a.Keys
		argv = append(argv, "--hub", j.Server, "--hub-seed", "/join/agent-$(JOB_COMPLETION_INDEX).nk", "--hub-ca", "/join/ca.crt")
	} else {
		data := map[string]any{}
		for i, url := range j.URLs {
			data[strconv.Itoa(i)] = base64.StdEncoding.EncodeToString([]byte(url))
		}
		out = append(out, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "data": data})
		argv = append(argv, "--join-file", "/join/$(JOB_COMPLETION_INDEX)")
	}
	return append(out, a.job(name, secret, argv))
}

// job is the Job of the agents. Each has processors of its own, away from each other and from engines.
func (a Agents) job(name, secret string, argv []any) map[string]any {
	amounts := map[string]any{"cpu": cmp.Or(a.CPU, "2"), "memory": cmp.Or(a.Memory, "2Gi")}
	const host = "kubernetes.io/hostname"
	chosen := func(key, value string) map[string]any {
		return map[string]any{"matchLabels": map[string]any{key: value}}
	}
	pod := map[string]any{
		"restartPolicy": "Never", "enableServiceLinks": false, "automountServiceAccountToken": false,
		"terminationGracePeriodSeconds": int64(agentGrace),
		"topologySpreadConstraints": []any{map[string]any{
			"maxSkew": int64(1), "topologyKey": host, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": chosen(labelInstance, name),
		}},
		"affinity": map[string]any{"podAntiAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"weight": int64(100), "podAffinityTerm": map[string]any{"topologyKey": host, "labelSelector": chosen(labelName, engineName)},
		}}}},
		"containers": []any{map[string]any{
			"name": agentContainer, "image": a.Image, "command": argv,
			"env":       []any{map[string]any{"name": "POD_NAME", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}},
			"resources": map[string]any{"requests": amounts, "limits": amounts},
			"volumeMounts": []any{
				map[string]any{"name": "join", "mountPath": "/join", "readOnly": true}, map[string]any{"name": "agent", "mountPath": "/agent"},
			},
		}},
		"volumes": []any{
			map[string]any{"name": "join", "secret": map[string]any{"secretName": secret}}, map[string]any{"name": "agent", "emptyDir": map[string]any{}},
		},
	}
	n := int64(a.Number)
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name}, "spec": map[string]any{
		"completionMode": "Indexed", "completions": n, "parallelism": n, "backoffLimit": int64(0), "ttlSecondsAfterFinished": int64(3600),
		"template": map[string]any{"metadata": map[string]any{}, "spec": pod},
	}}
}
