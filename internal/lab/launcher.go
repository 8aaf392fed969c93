package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/deploy/kube"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/engine/logs"
	"perflab/internal/hardware"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// launcher starts the engines of a study, and knows what was asked of engines and
// machines: each is asked once in a study.
type launcher struct {
	*study.Study
	ground ground
	fleet  Fleet         // of runtime fleet
	self   string        // this program, started again for simulated engines
	grace  time.Duration // that an engine of runtime process has to end, 0: the runtime's
	fence  deploy.Fence
	watch  *watcher
	tell   func(text string) // what whoever waits should read, may be nil
	*keeper

	asked    map[string]installed        // by engine
	runtimes map[string]deploy.Runtime   // by engine, those that were made
	islands  map[string]cluster.Topology // by machine, where known; nil: not asked yet
	checked  map[string]bool             // machines that passed their checks, by place and model
	patience *patience
}

func newLauncher(s *study.Study, o Options, w *watcher) *launcher {
	return &launcher{
		Study: s, fleet: o.Fleet, self: o.Self, grace: o.grace, fence: o.fence, watch: w, tell: o.Tell, ground: ground{pool: hardware.Pool{Variable: s.Visible()}, indices: map[string]map[string]int{}},
		keeper: &keeper{dir: o.Dir, perflab: o.Version},
		asked:  map[string]installed{}, runtimes: map[string]deploy.Runtime{}, checked: map[string]bool{}, patience: newPatience(),
	}
}

// runtime is how the study starts an engine; the same one throughout, for it may hold
// connections.
func (l *launcher) runtime(engineName string) (deploy.Runtime, error) {
	if rt, ok := l.runtimes[engineName]; ok {
		return rt, nil
	}
	rt, err := l.newRuntime(engineName)
	if err != nil {
		return nil, err
	}
	l.runtimes[engineName] = rt
	return rt, nil
}

func (l *launcher) newRuntime(engineName string) (deploy.Runtime, error) {
	r := l.Runtime
	switch r.Kind {
	case study.Existing:
		if s, ok := l.ServiceTarget(); ok {
			s.Progress = l.detail
			return &s, nil
		}
		return deploy.Existing{URLs: r.URLs, Hooks: deploy.Hooks(r.Hooks)}, nil
	case study.Process, study.Simulated, study.Predicted:
		return deploy.Process{Dir: r.Dir, Limits: r.Limits, Grace: l.grace, Fence: l.fence}, nil
	case study.SSH:
		return &deploy.SSH{Hosts: r.Hosts, Config: r.SSHConfig, Dir: r.Dir, Limits: r.Limits, Direct: r.Direct}, nil
	case study.Fleet:
		return l.onNode(l.Container(cmp.Or(engineName, l.anyServed())))
	case study.Kubernetes:
		return &kube.Runtime{Settings: l.Cluster(cmp.Or(engineName, l.anyServed())), Progress: l.detail}, nil
	case study.Docker:
		return &docker.Runtime{Settings: l.Container(engineName), Progress: l.detail}, nil
	}
	return nil, fmt.Errorf("runtime kind %q is not known", r.Kind)
}

// onNode starts engines on a machine of the fleet, in containers where the study wants that.
func (l *launcher) onNode(s docker.Settings) (deploy.Runtime, error) {
	r := l.Runtime
	p := deploy.Process{Dir: r.Dir, Limits: r.Limits, Grace: l.grace}
	if !l.InContainers() {
		return l.fleet.On(r.Node().Name, p, nil), nil
	}
	c, err := s.OnNode(l.detail)
	if err != nil {
		return nil, err
	}
	return l.fleet.On(r.Node().Name, p, &c), nil
}

// lookout runs commands beside an engine, where what it runs on is seen; nil: nothing does. A container on a machine of
// the fleet sees the devices that it is given, so that one for commands gets all.
func (l *launcher) lookout(engineName string) (deploy.Commander, error) {
	rt, err := l.runtime(engineName)
	if s := l.Container(engineName); err == nil && l.onNodes() && l.Visible() == arch.CUDA.Visible() && s.GPUs != docker.GPUsAll {
		if s.GPUs == docker.GPUsNone {
			return nil, nil
		}
		key := "to look beside " + engineName
		if rt = l.runtimes[key]; rt == nil {
			s.GPUs = docker.GPUsAll
			rt, err = l.onNode(s)
			l.runtimes[key] = rt
		}
	}
	if err != nil {
		return nil, err
	}
	c, _ := rt.(deploy.Commander)
	return c, nil
}

// onNodes reports whether engines are started in containers on machines of the fleet.
func (l *launcher) onNodes() bool { return l.Runtime.Kind == study.Fleet && l.InContainers() }

// anyServed is an engine of the study: all are started on the same machines.
func (l *launcher) anyServed() string {
	if served := l.Served(); len(served) > 0 {
		return served[0].Engine
	}
	return ""
}

// detail shows what is done at the moment.
func (l *launcher) detail(text string) { l.watch.change(func(s *Status) { s.Detail = text }) }

// prepare says what to start for a configuration, and where. notes are what its
// trial must say of it.
func (l *launcher) prepare(ctx context.Context, c study.Configuration, dir string) (la *launch, notes []string, err error) {
	rt, err := l.runtime(c.Command.Engine)
	if err != nil {
		return nil, nil, err
	}
	if k, ok := rt.(*kube.Runtime); ok {
		k.Model = c.Command.Model
	}
	places, notes, err := l.places(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	spec, err := l.deployment(c, places, dir)
	if err != nil {
		return nil, nil, err
	}
	if l.Runtime.StartsEngines() {
		notes = append(notes, listedSecrets(spec)...)
	}
	lookout, err := l.lookout(c.Command.Engine)
	return &launch{Study: l.Study, config: c, runtime: rt, lookout: lookout, spec: spec, places: places}, notes, err
}

// clear removes what an attempt at a trial left that never ended: engines
// still running, by their recorded identity, and partial directories.
func (l *launcher) clear(ctx context.Context, dir string) error {
	if _, err := l.sweep(ctx, filepath.Join(dir, logsDir)); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clear %s: %w", dir, err)
	}
	return nil
}

// sweep ends what deployments below a directory left running when their perflab was killed, and
// says what that was.
func (l *launcher) sweep(ctx context.Context, dir string) (ended []string, err error) {
	rt, err := l.runtime("")
	if err != nil {
		return nil, err
	}
	return rt.Sweep(ctx, dir)
}

// release gives up what the study's runtimes hold.
func (l *launcher) release() {
	for _, rt := range l.runtimes {
		if c, ok := rt.(io.Closer); ok {
			c.Close() // nothing runs any more: what fails here leaves nothing behind
		}
	}
}

// deployment says what to start for a plan at these places.
func (l *launcher) deployment(pl study.Configuration, places [][]cluster.Node, dir string) (deploy.Spec, error) {
	spec := deploy.Spec{
		Name: pl.Command.Engine, Dir: filepath.Join(dir, logsDir), Health: pl.Engine.Health,
		Diagnose: func(log string) (logs.Failure, bool) { return logs.Diagnose(pl.Engine.Name, log) },
		Phase:    func(line string) (string, bool) { return logs.Phase(pl.Engine.Name, line) },
		Progress: func(phase string) { l.watch.change(func(s *Status) { s.Detail = phase }) },
		Visible:  l.ground.pool.Variable,
	}
	spec.Timeout, spec.Silence = l.limits(pl.Command.Engine)
	cmd := keyInEnv(pl.Command)
	cmd.Host = "{host}"
	var stand []string
	if l.Runtime.Kind == study.Simulated { // one process stands in for all of a replica
		var err error
		if stand, err = l.simulator(pl); err != nil {
			return spec, err
		}
		cmd = cmd.Whole()
	}
	var err error
	if spec.Replicas, err = l.replicas(cmd, places); err != nil {
		return spec, err
	}
	for i := range spec.Replicas {
		rep := &spec.Replicas[i]
		rep.Argv = append(slices.Clip(stand), rep.Argv...)
	}
	return spec, nil
}

// replicas are the processes of a command in each place.
func (l *launcher) replicas(cmd engine.Command, places [][]cluster.Node) ([]deploy.Replica, error) {
	var out []deploy.Replica
	for _, place := range places {
		parts, err := cluster.Spread(cmd, place, l.Runtime.Spread)
		if err != nil {
			return nil, err
		}
		rep := deploy.Spread(parts)
		if l.ground.pool.Variable == "" {
			rep.Devices = nil
			for i := range rep.Peers {
				rep.Peers[i].Devices = nil
			}
		}
		out = append(out, rep)
	}
	return out, nil
}

// limits are how long a start of an engine may take, and how long its logs may be silent. A
// study that gives the first alone means it for both. What is up already is asked at once.
func (l *launcher) limits(engineName string) (whole, silence time.Duration) {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	whole, silence = seconds(l.Runtime.ReadyS), seconds(l.Runtime.SilenceS)
	switch {
	case whole > 0:
		silence = cmp.Or(silence, whole)
	case l.Runtime.Kind != study.Existing:
		whole = l.patience.whole(engineName)
	}
	return whole, silence
}

// allowMore allows a start that was late more time, where that may help and the study does
// not say how long it may take.
func (l *launcher) allowMore(la *launch, late *deploy.LateError) bool {
	if l.Runtime.ReadyS > 0 || !l.patience.extend(la.config.Command.Engine, late) {
		return false
	}
	la.spec.Timeout, la.spec.Silence = l.limits(la.config.Command.Engine)
	return true
}

// places are the devices of each replica. notes name those that no replica has, for they
// count as allocated, and say what is to be known of replicas that span machines.
func (l *launcher) places(ctx context.Context, pl study.Configuration) (places [][]cluster.Node, notes []string, err error) {
	if l.Runtime.Kind == study.Existing {
		for range max(len(l.Runtime.URLs), 1) { // of a Service it is known when it is found
			places = append(places, []cluster.Node{{Devices: cluster.Devices(1)}})
		}
		return places, nil, nil
	}
	nodes := l.nodes()
	var islands map[string]cluster.Topology
	if l.Runtime.StartsEngines() && l.Visible() == arch.CUDA.Visible() && pl.Replicas > 1 && l.Runtime.Kind != study.Kubernetes {
		if islands, err = l.topologies(ctx, pl.Command.Engine); err != nil {
			return nil, nil, err
		}
	}
	places, left := cluster.Place(nodes, max(pl.Config.GPUs, 1), islands)
	if len(places) == 0 {
		return nil, nil, &engine.Rejection{Rule: "gpus", Reason: fmt.Sprintf("%d GPUs a replica cannot be had of %s alike: a replica takes whole machines, or part of one", pl.Config.GPUs, l.HardwareText(""))}
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
		names = append(names, strings.TrimSpace(strings.Join(node.Devices, ", ")+" "+ofNode(node.Name)))
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
func (l *launcher) nodes() []cluster.Node {
	if m := l.Runtime.Node(); m.Name != "" {
		n := cluster.Node{Name: m.Name, Devices: m.Devices}
		if m.Devices == nil {
			n.Devices = cluster.Devices(l.Hardware.GPUs)
		}
		return []cluster.Node{n}
	}
	if l.Runtime.Kind == study.Kubernetes && l.Hardware.Nodes > 1 { // which they are the cluster decides
		return unnamed(l.Study)
	}
	if l.Runtime.Kind != study.SSH {
		if l.ground.pool.Devices == nil {
			return []cluster.Node{{Devices: cluster.Devices(l.Hardware.GPUs)}}
		}
		return []cluster.Node{{Devices: l.ground.pool.Devices}}
	}
	var out []cluster.Node
	for _, h := range l.Runtime.Hosts {
		n := cluster.Node{Name: h.Name, Addr: cmp.Or(h.Address, h.Name), Interface: h.Interface, HCA: h.HCA, Devices: h.Devices}
		if h.Devices == nil {
			n.Devices = cluster.Devices(cmp.Or(h.GPUs, l.Hardware.GPUs/len(l.Runtime.Hosts)))
		}
		out = append(out, n)
	}
	return out
}

// topologies are how the accelerators of each machine are linked, as nvidia-smi tells;
// a machine that does not tell is dealt in order.
func (l *launcher) topologies(ctx context.Context, engineName string) (map[string]cluster.Topology, error) {
	if l.islands != nil {
		return l.islands, nil
	}
	l.islands = map[string]cluster.Topology{}
	c, err := l.lookout(engineName)
	if err != nil || c == nil {
		return l.islands, err
	}
	for _, node := range c.Nodes() {
		text, err := (asker{Commander: c, node: node, limit: askTimeout}).ask(ctx, "nvidia-smi", "topo", "-m")
		if err != nil {
			continue // no such tool there, or one that hangs: nothing is known of its links
		}
		if t, err := cluster.ParseTopology(text); err == nil {
			t.Indices = l.ground.indices[node]
			l.islands[node] = t
		}
	}
	return l.islands, context.Cause(ctx)
}

// preflight checks the machines of replicas that span several, once for each set of
// them and each model.
func (l *launcher) preflight(ctx context.Context, la *launch) error {
	c, ok := la.runtime.(deploy.Commander)
	if !ok || l.Runtime.Kind == study.Kubernetes { // whose machines are not known before pods run there
		return nil
	}
	for _, place := range la.places {
		if len(place) < 2 {
			continue
		}
		words := []string{la.config.Command.Engine, la.config.Command.Model}
		for _, n := range place {
			words = append(words, n.Name)
		}
		key := strings.Join(words, " ")
		if l.checked[key] {
			continue
		}
		p := deploy.Preflight{Name: la.spec.Name, Nodes: place, Version: inEnv(la.config.Command.Env, la.config.Engine.VersionArgv()), Read: la.config.Engine.ParseVersion, Model: la.config.Command.Model}
		if _, err := p.Run(ctx, c); err != nil {
			return err
		}
		l.checked[key] = true
	}
	return nil
}

// simulator is the command that stands in for the hardware of one replica.
func (l *launcher) simulator(pl study.Configuration) ([]string, error) {
	if l.self == "" {
		return nil, errors.New("start a simulated engine: the path of this program is unknown")
	}
	argv := []string{l.self, "sim", "--gpu", l.Hardware.GPU, "--gpus", strconv.Itoa(pl.Config.GPUs)}
	if l.Runtime.StartupS > 0 {
		argv = append(argv, "--startup", time.Duration(l.Runtime.StartupS*float64(time.Second)).String())
	}
	if v := l.Runtime.Speed(); v > 0 {
		argv = append(argv, "--speed", strconv.FormatFloat(v, 'g', -1, 64))
	}
	if pl.Command.Version != "" {
		argv = append(argv, "--engine-version", pl.Command.Version)
	}
	if path, ok := l.ModelConfig[pl.Command.Model]; ok {
		argv = append(argv, "--model-config", path)
	}
	argv = append(argv, l.Accuracy.SimulatorFlags(pl.Command)...)
	if p := pl.Command.Pools(); p.Split() {
		argv = append(argv, "--disaggregation", p.String())
		for i, use := range []engine.PoolUse{pl.Command.Prefill, pl.Command.Decode} {
			args, err := use.Args(pl.Command)
			if err != nil {
				return nil, err
			}
			if len(args) > 0 {
				argv = append(argv, []string{"--prefill-flags", "--decode-flags"}[i], engine.Join(args))
			}
		}
	}
	return append(argv, "--"), nil
}

// installed is what an engine says of itself where it would run.
type installed struct {
	help      engine.Help
	version   string // by its own account, "" where it does not tell
	helpError string // why its flags are not known, "" if they are
	askAgain  bool   // its machine could not be reached: the next trial asks again
	told      bool   // the trials know what readers of the study should
}

// ask reads version and flags of an engine that the study starts, once in a study: an
// unknown flag then is a refusal before anything is launched, and defaults are those of
// the version that runs. notes are what the trial that asked first must say.
func (l *launcher) ask(ctx context.Context, e *engine.Engine) (notes []string, err error) {
	in, err := l.question(ctx, e)
	if err != nil || in.told {
		return nil, err
	}
	in.told = true
	l.asked[e.Name] = in
	if err := l.keep(in.help); err != nil {
		return nil, err
	}
	return l.remarks(e, in), nil
}

// question asks an engine, or has its answer already.
func (l *launcher) question(ctx context.Context, e *engine.Engine) (in installed, err error) {
	if in, ok := l.asked[e.Name]; ok && !in.askAgain {
		return in, nil
	}
	if l.Runtime.StartsEngines() {
		rt, err := l.runtime(e.Name)
		if err != nil {
			return in, err
		}
		if c, ok := rt.(deploy.Commander); ok {
			l.watch.change(func(s *Status) { s.Phase = "asking " + e.Title + " for its flags" })
			before, err := l.said(e.Name)
			if err != nil {
				return in, err
			}
			in = asker{c, c.Nodes()[0], l.Engines[e.Name].Env, helpTimeout}.engine(ctx, e, before)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return in, err
	}
	l.asked[e.Name] = in
	return in, nil
}

// engine asks an engine of itself: on the first node, for that they are alike is checked before
// replicas span them. What one of the same version said before stands.
func (a asker) engine(ctx context.Context, e *engine.Engine, before engine.Help) (in installed) {
	text, err := a.ask(ctx, e.VersionArgv()...)
	if err == nil {
		in.version, _ = e.ParseVersion(text)
	}
	if in.version != "" && in.version == before.Version {
		in.help = before
		return in
	}
	if text, err = a.ask(ctx, e.HelpArgv()...); err == nil {
		in.help, err = engine.ParseHelp(e, text)
	}
	in.help.Version = in.version
	if err != nil {
		infra, broke := errors.AsType[*deploy.InfraError](err)
		if broke && permanent(infra) {
			return in // the launch says the same
		}
		in.helpError, in.askAgain = err.Error(), broke
		if broke && infra.Hint() != "" {
			in.helpError += " (" + infra.Hint() + ")"
		}
	}
	return in
}

// version is the engine's own account, or what the study says.
func (l *launcher) version(engineName string) string {
	return cmp.Or(l.asked[engineName].version, l.Engines[engineName].Version)
}

// configure makes a configuration concrete by what the engine said of itself, as
// far as it was asked.
func (l *launcher) configure(c tune.Config) (study.Configuration, error) {
	in := l.asked[c["engine"]]
	known := study.Installed{Version: in.version}
	if in.helpError == "" {
		known.Help = in.help
	}
	return l.Configure(c, known)
}

// public is a Python version without the part that names its build: 0.32.0 of 0.32.0+cpu.
func public(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return version
}

// remarks are what asking the engine showed that readers of the study should know.
func (l *launcher) remarks(e *engine.Engine, in installed) []string {
	var out []string
	if said := l.Engines[e.Name].Version; said != "" && in.version != "" && said != in.version && said != public(in.version) {
		out = append(out, fmt.Sprintf("The study says that %s is of version %s; it is %s by its own account, and its defaults are taken from that.", e.Title, said, in.version))
	}
	if version := cmp.Or(in.version, l.Engines[e.Name].Version); e.Untried(version) != "" {
		out = append(out, fmt.Sprintf("perflab was not tried with %s %s, and knows %s up to %s: flags are checked by what its own help lists, defaults and rules are those of %[4]s.", e.Title, version, e.Title, e.Untried(version)))
	}
	if in.helpError != "" {
		out = append(out, fmt.Sprintf("The flags of %s could not be checked against its own help: %s.", e.Title, in.helpError))
	}
	return out
}
