package machines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
)

const (
	invitedFor = 15 * time.Minute // that pods may take to run, after which their invitations end
	joinWithin = time.Minute      // that agents may take to join once their pods run
)

// Pods starts load agents in a cluster, leads them once all have joined the fleet, and removes them by leave.
func (h *Hub) Pods(ctx context.Context, env console.Env, s kube.Settings, a kube.Agents) (crew *fleet.Crew, job string, leave func(), err error) {
	l, stop, err := h.Lead(ctx, env)
	if err != nil {
		return nil, "", nil, err
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	joining, err := h.joining(ctx, env, l, a)
	if err != nil {
		return nil, "", nil, err
	}
	say := func(text string) { fmt.Fprintf(env.Stderr, "perflab: %s\n", text) }
	pods, err := kube.StartAgents(ctx, s, a, joining, say)
	if err != nil {
		return nil, "", nil, err
	}
	leave = func() {
		if err := pods.Stop(context.WithoutCancel(ctx)); err != nil {
			say(err.Error())
		}
		stop()
	}
	choice := fleet.Choice{Count: a.Number, Labels: map[string]string{kube.LabelJob: pods.Name()}}
	if crew, err = joined(ctx, l, choice, pods); err != nil {
		err = errors.Join(err, pods.Stop(context.WithoutCancel(ctx)))
		return nil, "", nil, err
	}
	return crew, pods.Name(), leave, nil
}

// joining is how agents in pods become members of the fleet.
func (h *Hub) joining(ctx context.Context, env console.Env, l *fleet.Leader, a kube.Agents) (j kube.Joining, err error) {
	if at := h.at(env); isAddress(at) {
		if a.Keys == "" {
			return j, console.Usage(errors.New("the hub is an outside NATS server, which invites nobody: put a key for each agent into a Secret, and name it in load.keys (perflab fleet accounts makes keys)"))
		}
		j.Server = at
		if a.Hub != "" {
			j.Server = a.Hub
		}
		return j, nil
	}
	if a.Keys != "" {
		return j, console.Usage(errors.New("load.keys is for an outside NATS server as the hub: leave it out, agents get an invitation each"))
	}
	for range a.Number {
		url, err := l.Invite(ctx, bus.Invite{Host: a.Hub, Lasts: invitedFor})
		if err != nil {
			return j, fmt.Errorf("invite load agents: %w", err)
		}
		j.URLs = append(j.URLs, url)
	}
	return j, nil
}

// joined is the crew of agents whose pods run, once all are members.
func joined(ctx context.Context, l *fleet.Leader, c fleet.Choice, pods *kube.Loaders) (*fleet.Crew, error) {
	late := time.NewTimer(joinWithin)
	defer late.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		crew, err := l.Crew(ctx, c)
		if few, ok := errors.AsType[*fleet.FewError](err); !ok || few.Have == few.Want {
			return crew, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-l.Changed():
		case <-look.C:
			if err := pods.Ended(ctx); err != nil {
				return nil, err
			}
		case <-late.C:
			return nil, &deploy.InfraError{
				Op: "have load agents in pods join the fleet", Err: err,
				Help: "see what the pods say; they must reach the hub: name in load.hub by what name or address they do",
			}
		}
	}
}

func newKubeAgents(env console.Env) *cobra.Command {
	var f clusterFlags
	var h Hub
	a := kube.Agents{}
	c := &cobra.Command{
		Use:   "agents N",
		Short: "Run agents of a fleet as pods of a cluster, until this command ends",
		Long: `Start N pods of perflab agent in a namespace, as an Indexed Job, have them join the fleet of
a hub, and keep them until an interrupt (Ctrl-C): then all of it is removed. Each has
processors of its own, away from each other and from engines as far as nodes allow it.

The load of perflab bench --fleet job=NAME, which is printed, comes from inside of the
cluster then, at the addresses of Services and pods, and its calls come back to the
leader: no volume is needed. A study does the same with load: in runtime.kubernetes.

The pods reach the hub at the address by which it knows itself, or by --agent-hub. Of
perflab's own hub each gets an invitation, in a Secret that goes with the pods; of an
outside NATS server each has a key in a Secret of yours, which --keys names.`,
		Example: "  perflab kube agents 4 --image registry.example/perflab:v1 --namespace bench --hub fleet --agent-hub lab.example.org",
		Args:    console.WantArgs(1, "how many agents"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if a.Number, err = strconv.Atoi(args[0]); err != nil {
				return console.Usage(fmt.Errorf("%q is no number of agents", args[0]))
			}
			if err := a.Validate(); err != nil {
				return console.Usage(err)
			}
			_, job, leave, err := h.Pods(c.Context(), env, f.Settings, a)
			if err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "%s of the fleet in pods: send load by perflab bench --fleet job=%s\nAn interrupt (Ctrl-C) ends and removes them\n", console.Plural(a.Number, "agent"), job)
			<-c.Context().Done()
			leave()
			return nil
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&a.Image, "image", "", "image of perflab, of this version")
	fs.StringVar(&a.CPU, "cpu", "", "CPUs of each, as requests and limits (default 2)")
	fs.StringVar(&a.Memory, "memory", "", "memory of each (default 2Gi)")
	f.addPlace(fs)
	h.Add(fs)
	fs.StringVar(&a.Hub, "agent-hub", "", "name or address by which pods reach the hub, if it is another")
	fs.StringVar(&a.Keys, "keys", "", "Secret with a key for each agent of an outside NATS server: agent-0.nk ..., and ca.crt")
	return c
}
