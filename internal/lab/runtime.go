package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/engine/logs"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// runtime is how the study starts an engine; the same one throughout, for it may hold
// connections.
func (l *session) runtime(engineName string) (deploy.Runtime, error) {
	if rt, ok := l.runtimes[engineName]; ok {
		return rt, nil
	}
	rt, err := l.newRuntime(engineName)
	if err != nil {
		return nil, err
	}
	if l.runtimes == nil {
		l.runtimes = map[string]deploy.Runtime{}
	}
	l.runtimes[engineName] = rt
	return rt, nil
}

func (l *session) newRuntime(engineName string) (deploy.Runtime, error) {
	r := l.Runtime
	switch r.Kind {
	case study.Existing:
		return deploy.Existing{URLs: r.URLs, Hooks: deploy.Hooks(r.Hooks)}, nil
	case study.Process, study.Simulated, study.Predicted:
		return deploy.Process{Dir: r.Dir, Limits: r.Limits, Grace: l.grace}, nil
	case study.SSH:
		return &deploy.SSH{Hosts: r.Hosts, Config: r.SSHConfig, Dir: r.Dir, Limits: r.Limits, Direct: r.Direct}, nil
	case study.Docker:
		return &docker.Runtime{Settings: l.Container(engineName), Progress: func(text string) {
			l.watch(func(s *Status) { s.Detail = text })
		}}, nil
	}
	return nil, fmt.Errorf("runtime kind %q is not known", r.Kind)
}

// release gives up what the study's runtimes hold.
func (l *session) release() {
	for _, rt := range l.runtimes {
		if c, ok := rt.(io.Closer); ok {
			c.Close() // nothing runs any more: what fails here leaves nothing behind
		}
	}
}

// deployment says what to start for a plan at these places.
func (l *session) deployment(pl study.Configuration, places [][]cluster.Node, dir string) (deploy.Spec, error) {
	spec := deploy.Spec{
		Name: pl.Command.Engine, Dir: filepath.Join(dir, "logs"), Health: pl.Engine.Health,
		Diagnose: func(log string) (logs.Failure, bool) { return logs.Diagnose(pl.Engine.Name, log) },
		Timeout:  time.Duration(l.Runtime.ReadyS * float64(time.Second)), Visible: l.Visible(),
	}
	cmd := pl.Command
	cmd.Host = "{host}"
	for _, place := range places {
		parts, err := cluster.Spread(cmd, place, l.Runtime.Spread)
		if err != nil {
			return spec, err
		}
		rep := deploy.Spread(parts)
		if spec.Visible == "" {
			rep.Devices = nil
			for i := range rep.Peers {
				rep.Peers[i].Devices = nil
			}
		}
		if l.Runtime.Kind == study.Simulated {
			if l.Self == "" {
				return spec, errors.New("start a simulated engine: the path of this program is unknown")
			}
			rep.Argv = append(l.simulator(pl), rep.Argv...)
		}
		spec.Replicas = append(spec.Replicas, rep)
	}
	return spec, nil
}

// places are the devices of each replica. notes name those that no replica has, for they
// count as allocated, and say what is to be known of replicas that span machines.
func (l *session) places(ctx context.Context, pl study.Configuration) (places [][]cluster.Node, notes []string, err error) {
	if l.Runtime.Kind == study.Existing {
		for range l.Runtime.URLs {
			places = append(places, []cluster.Node{{Devices: []int{0}}})
		}
		return places, nil, nil
	}
	nodes := l.nodes()
	var islands map[string]cluster.Topology
	if l.Runtime.StartsEngines() && l.Visible() == arch.CUDA.Visible() && pl.Replicas > 1 {
		if islands, err = l.topologies(ctx, pl.Command.Engine); err != nil {
			return nil, nil, err
		}
	}
	places, left := cluster.Place(nodes, max(pl.Config.GPUs, 1), islands)
	if len(places) == 0 {
		return nil, nil, &engine.Rejection{Rule: "gpus", Reason: fmt.Sprintf("%d GPUs a replica cannot be had of %s alike: a replica takes whole machines, or part of one", pl.Config.GPUs, l.hardware())}
	}
	if len(left) > 0 {
		notes = append(notes, idle(left, l.Hardware.GPUs))
	}
	return places, append(notes, cluster.Remarks(pl.Command, places[0], l.Runtime.Spread)...), nil
}

// idle names the devices that no replica uses.
func idle(left []cluster.Node, of int) string {
	n := 0
	var names []string
	for _, node := range left {
		n += len(node.Devices)
		ids := make([]string, len(node.Devices))
		for i, d := range node.Devices {
			ids[i] = strconv.Itoa(d)
		}
		names = append(names, strings.TrimSpace(strings.Join(ids, ", ")+" "+ofNode(node.Name)))
	}
	return fmt.Sprintf("%d of %d GPUs are used by no replica (%s); they count as allocated.", n, of, strings.Join(names, "; "))
}

func ofNode(name string) string {
	if name == "" {
		return ""
	}
	return "of " + name
}

// nodes are the study's machines with their devices. Whatever its hardware is spread
// over, a simulated engine runs here.
func (l *session) nodes() []cluster.Node {
	if l.Runtime.Kind != study.SSH {
		return []cluster.Node{{Devices: devices(l.Hardware.GPUs)}}
	}
	var out []cluster.Node
	for _, h := range l.Runtime.Hosts {
		out = append(out, cluster.Node{
			Name: h.Name, Addr: cmp.Or(h.Address, h.Name), Interface: h.Interface, HCA: h.HCA,
			Devices: devices(cmp.Or(h.GPUs, l.Hardware.GPUs/len(l.Runtime.Hosts))),
		})
	}
	return out
}

func devices(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// topologies are how the accelerators of each machine are linked, as nvidia-smi tells;
// a machine that does not tell is dealt in order.
func (l *session) topologies(ctx context.Context, engineName string) (map[string]cluster.Topology, error) {
	if l.islands != nil {
		return l.islands, nil
	}
	l.islands = map[string]cluster.Topology{}
	rt, err := l.runtime(engineName)
	if err != nil {
		return nil, err
	}
	c, ok := rt.(deploy.Commander)
	if !ok {
		return l.islands, nil
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, node := range c.Nodes() {
		var out bytes.Buffer
		if c.Command(asking, node, []string{"nvidia-smi", "topo", "-m"}, &out) != nil {
			continue // no such tool there, or one that hangs: nothing is known of its links
		}
		if t, err := cluster.ParseTopology(out.String()); err == nil {
			l.islands[node] = t
		}
	}
	return l.islands, context.Cause(ctx)
}

// askTimeout bounds a question to a machine.
const askTimeout = 30 * time.Second

// preflight checks the machines of replicas that span several, once for each set of
// them and each model.
func (l *session) preflight(ctx context.Context, pl study.Configuration) error {
	c, ok := l.live.rt.(deploy.Commander)
	if !ok {
		return nil
	}
	for _, place := range l.live.places {
		if len(place) < 2 {
			continue
		}
		words := []string{pl.Command.Engine, pl.Command.Model}
		for _, n := range place {
			words = append(words, n.Name)
		}
		key := strings.Join(words, " ")
		if l.checked[key] {
			continue
		}
		p := deploy.Preflight{Name: l.live.spec.Name, Nodes: place, Version: within(pl.Command.Env, pl.Engine.VersionArgv()), Read: pl.Engine.ParseVersion, Model: pl.Command.Model}
		if _, err := p.Run(ctx, c); err != nil {
			return err
		}
		if l.checked == nil {
			l.checked = map[string]bool{}
		}
		l.checked[key] = true
	}
	return nil
}

// account adds to a trial what the logs of a deployment that is ready tell.
func (t *trialRecord) account(e *engine.Engine, spec deploy.Spec) {
	t.Facts = nil
	for _, row := range logs.Read(e.Name, readLog(spec.Dir, "replica-0")).Rows() {
		t.Facts = append(t.Facts, factOf(row))
	}
	for i, rep := range spec.Replicas {
		if len(rep.Peers) == 0 {
			continue
		}
		logs := map[string]string{fmt.Sprintf("replica-%d", i): cmp.Or(rep.Node, "the first machine")}
		for _, p := range rep.Peers {
			logs[fmt.Sprintf("replica-%d.%s", i, p.Name)] = cmp.Or(p.Node, p.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(logs)) {
			if f, ok := deploy.Network(logs[name], readLog(spec.Dir, name)); ok && !f.OK && !slices.Contains(t.Notes, f.Text+".") {
				t.Notes = append(t.Notes, f.Text+".")
			}
		}
	}
}

// readLog is a process's log of its last launch: launches of a directory follow each other
// in it, each behind a line with the time and the command. One that cannot be read tells
// nothing.
func readLog(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name+".log"))
	if err != nil {
		return ""
	}
	if heads := launchHead.FindAllIndex(b, -1); len(heads) > 0 {
		b = b[heads[len(heads)-1][0]:]
	}
	return string(b)
}

var launchHead = regexp.MustCompile(`(?m)^# \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `)

// reject ends a trial by a rule of ours, before anything is launched.
func (t *trialRecord) reject(e *engine.Engine, r *engine.Rejection, cmd engine.Command) {
	t.Status, t.Reason = tune.Refused, r.Reason
	if f, ok := logs.Diagnose(e.Name, r.Log); ok {
		t.Class, t.failed = f.Class, &failed{f, cmd}
	}
}

// refuse ends a trial by what the engine said.
func (t *trialRecord) refuse(reason string, f logs.Failure, cmd engine.Command) {
	t.Status, t.Reason, t.Class, t.Advice = tune.Refused, reason, f.Class, f.Advice
	t.failed = &failed{f, cmd}
	if repair := f.RepairFor(cmd); len(repair) > 0 {
		var steps []string
		for _, name := range slices.Sorted(maps.Keys(repair)) {
			if repair[name] == "" {
				steps = append(steps, "leave "+name+" unset")
				continue
			}
			steps = append(steps, name+"="+repair[name])
		}
		t.Advice = strings.TrimRight(t.Advice, ".") + "; try " + strings.Join(steps, " ")
	}
}

// simulator is the command that stands in for the hardware of one replica.
func (l *session) simulator(pl study.Configuration) []string {
	argv := []string{l.Self, "sim", "--gpu", l.Hardware.GPU, "--gpus", strconv.Itoa(pl.Config.GPUs)}
	if l.Runtime.StartupS > 0 {
		argv = append(argv, "--startup", time.Duration(l.Runtime.StartupS*float64(time.Second)).String())
	}
	if pl.Command.Version != "" {
		argv = append(argv, "--engine-version", pl.Command.Version)
	}
	if path, ok := l.ModelConfig[pl.Command.Model]; ok {
		argv = append(argv, "--model-config", path)
	}
	argv = append(argv, l.Accuracy.SimulatorFlags(pl.Command)...)
	return append(argv, "--")
}

func factOf(row logs.FactRow) result.EngineFact {
	return result.EngineFact{Name: row.Name, Unit: row.Unit, Value: row.Value, Doc: row.Doc}
}

// copies is how many replicas of a plan serve.
func (l *session) copies(pl study.Configuration) int {
	if l.Runtime.Kind == study.Existing {
		return len(l.Runtime.URLs)
	}
	return pl.Replicas
}
