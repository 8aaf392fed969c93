package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/study"
)

// scriptFile starts by hand what a trial started, in its directory.
const scriptFile = "start.sh"

// writeStart keeps how a trial's configuration is started by hand: the processes that perflab
// starts for it, each with what it adds to the command, and a script of them. Containers and
// hooks have a way of their own, and what cannot be laid out is refused by its launch.
func (ev *evaluation) writeStart(ctx context.Context) error {
	if ev.Runtime.Kind == study.Existing || ev.InContainers() {
		return nil
	}
	if ev.Runtime.Kind == study.Kubernetes {
		return ev.writeManifests()
	}
	plan, err := ev.engines.byHand(ctx, ev.config)
	if _, rejected := errors.AsType[*engine.Rejection](err); rejected {
		return nil
	}
	if err != nil {
		return err
	}
	plan.Comments = []string{fmt.Sprintf("Trial %d of study %s: %s", ev.p.Trial, ev.Name, ev.p.Label)}
	if m := ev.Runtime.Node(); m.Name != "" {
		plan.Comments = append(plan.Comments, "It ran on machine "+m.Name+" of the fleet: start it there.")
	}
	if len(plan.Nodes) > 0 {
		plan.Comments = append(plan.Comments, "Machines are reached by ssh under their names here: what the study says of users, ports and keys belongs into your ssh configuration.")
	}
	plan.Bench = bench.Command(ev.servedName(), ev.Bench.Backend, ev.Bench.Cache, ev.WorkloadSpec(ev.Workloads[0].Name, 0))
	lines, err := render.Lines(plan)
	if _, lacks := errors.AsType[*render.MissingError](err); lacks {
		return nil
	}
	if err != nil {
		return err
	}
	for _, x := range lines {
		ev.t.Processes = append(ev.t.Processes, outcome.Process(x))
	}
	text, err := render.Script(plan)
	if _, lacks := errors.AsType[*render.MissingError](err); lacks {
		return nil // an address, which the study does not name
	}
	if err != nil {
		return err
	}
	path := filepath.Join(ev.dir, scriptFile)
	ev.t.Script = ev.studyDir.relative(path)
	return rundir.WriteFile(path, []byte(ev.Options.Secrets.Text(text)))
}

// manifestFile starts by hand what a trial started as pods, in its directory.
const manifestFile = "start.yaml"

// writeManifests keeps the manifests of a trial's configuration. What cannot be written so, such as
// a router whose image is not named, the trial goes without.
func (ev *evaluation) writeManifests() error {
	comment := fmt.Sprintf("Trial %d of study %s: %s", ev.p.Trial, ev.Name, ev.p.Label)
	text, err := manifests(ev.Study, ev.config, comment, render.ObjectName(fmt.Sprintf("%s-%d", ev.Name, ev.p.Trial)),
		bench.Command(ev.servedName(), ev.Bench.Backend, ev.Bench.Cache, ev.WorkloadSpec(ev.Workloads[0].Name, 0)))
	if err != nil {
		ev.t.note("How to start it by hand is not written down: %v.", err)
		return nil
	}
	path := filepath.Join(ev.dir, manifestFile)
	ev.t.Script = ev.studyDir.relative(path)
	return rundir.WriteFile(path, []byte(ev.Options.Secrets.Text(text)))
}

// manifests are those of a configuration, as perflab render writes them.
func manifests(s *study.Study, c study.Configuration, comment, name, benchCommand string) (string, error) {
	k := s.Cluster(c.Command.Engine)
	nodes := max(s.Hardware.Nodes, 1)
	site := render.Site{GPUs: s.Hardware.GPUs / nodes, Nodes: nodes, Method: s.Runtime.Spread, Pods: k.Pods, Images: []string{k.Image}}
	for _, f := range render.Formats() {
		if f.Name == render.KubernetesFormat {
			site.Format = f
		}
	}
	p, err := site.Plan(render.Configuration{
		Label: c.Command.Engine, Name: name, Command: keyInEnv(c.Command), GPU: s.Accelerator, World: max(c.Config.GPUs, 1), Bench: benchCommand, Notes: []string{comment},
	})
	if err != nil {
		return "", err
	}
	return render.Kubernetes(p)
}

// byHand is a configuration's deployment for somebody else to start: on the study's machines and
// devices, with the engine itself where a simulated one stands in for it.
func (l *launcher) byHand(ctx context.Context, c study.Configuration) (render.Plan, error) {
	p := render.Plan{Name: "start", Spec: deploy.Spec{Name: c.Command.Engine, Health: c.Engine.Health}}
	if l.Accelerator.Platform != arch.CUDA { // whose variable is the default
		p.Spec.Visible = l.ground.pool.Variable
	}
	places, _, err := l.places(ctx, c)
	if err != nil {
		return p, err
	}
	if l.Hardware.Nodes > 1 && !l.Runtime.StartsEngines() { // what stands in for all of them runs here
		places, _ = cluster.Place(unnamed(l.Study), max(c.Config.GPUs, 1), nil)
		if len(places) == 0 {
			return p, &engine.Rejection{Rule: "gpus", Reason: fmt.Sprintf("%d GPUs a replica cannot be had of %s", c.Config.GPUs, l.HardwareText(""))}
		}
	}
	if l.Runtime.Kind == study.Fleet { // whoever starts it by hand does so on the machine
		for _, place := range places {
			for i := range place {
				place[i].Name = ""
			}
		}
	}
	cmd := keyInEnv(c.Command)
	for _, n := range slices.Concat(places...) {
		if n.Name != "" && !slices.ContainsFunc(p.Nodes, func(o cluster.Node) bool { return o.Name == n.Name }) {
			p.Nodes = append(p.Nodes, n)
		}
	}
	if len(p.Nodes) == 0 { // nobody else need reach it
		cmd.Host = cmp.Or(cmd.Host, "127.0.0.1")
	}
	p.Spec.Replicas, err = l.replicas(cmd, places)
	for i := range p.Spec.Replicas {
		r := &p.Spec.Replicas[i]
		r.Argv = inDir(l.Runtime.Dir, r.Argv)
		for j := range r.Peers {
			r.Peers[j].Argv = inDir(l.Runtime.Dir, r.Peers[j].Argv)
		}
	}
	return p, err
}

// inDir is a command in the directory that the study has for its engines.
func inDir(dir string, argv []string) []string {
	if dir == "" {
		return argv
	}
	return append([]string{"env", "-C", dir}, argv...)
}

// unnamed are as many machines as the study has, whose names and addresses it does not tell.
func unnamed(s *study.Study) []cluster.Node {
	var out []cluster.Node
	for i := range s.Hardware.Nodes {
		name := fmt.Sprintf("node-%d", i)
		out = append(out, cluster.Node{Name: name, Addr: render.Addr(name), Devices: cluster.Devices(s.Hardware.GPUs / s.Hardware.Nodes)})
	}
	return out
}
