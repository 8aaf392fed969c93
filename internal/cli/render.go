package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/redact"
	"perflab/internal/study"
)

// renderFlags are the flags of perflab render.
type renderFlags struct {
	as  string
	out string

	gpu         string
	gpus        int
	nodes       int
	hosts       []string
	iface       string
	hca         string
	method      string
	topology    string
	version     string
	modelConfig string

	name      string
	port      int
	ready     time.Duration
	images    []string
	mounts    []string
	shmSize   string
	ulimits   []string
	partition string
	account   string
	timeLimit string
	namespace string
}

// renderer is a format: how it is written, and the end of its files' names.
type renderer struct {
	write     func(render.Plan) (string, error)
	ext       string
	container bool // needs an image
}

// renderers are the formats by name.
func renderers() map[string]renderer {
	return map[string]renderer{
		"script":     {render.Script, ".sh", false},
		"compose":    {render.Compose, ".yaml", true},
		"slurm":      {render.Slurm, ".sbatch", false},
		"kubernetes": {render.Kubernetes, ".yaml", true},
	}
}

const renderLong = `Write down how a serving command would be started, instead of starting it: for
sites that allow no direct start. Nothing is started and nothing is asked.

  script      bash: replicas with ports and devices of their own, a wait for each
              to be ready, everything ended at Ctrl-C; other hosts by ssh
  compose     docker compose: a service for each replica, on one machine
  slurm       a batch file: a step for each process, ranks of TensorRT-LLM by srun
  kubernetes  Deployment and Service; over several nodes a LeaderWorkerSet

GPUs that one copy does not use are filled with replicas, as perflab tune deploys
them; those left over are named. A command that takes more GPUs than a machine
has spans machines: over Ray or the engine's own ranks (--method).

A study file gives one file for each configuration that it tries: the baseline,
and each candidate on top of it. Each file ends by saying, or says at its head,
which perflab bench command measures it. Secrets are not written down: the files
refer to the environment of who runs them.`

func newRender(env Env) *cobra.Command {
	f := &renderFlags{}
	c := &cobra.Command{
		Use:   "render [flags] (STUDY.yaml | -- ENGINE COMMAND)",
		Short: "Write a script, compose file, Slurm job or Kubernetes manifests for a serving command",
		Long:  renderLong,
		Example: `  perflab render --gpu h100-sxm --gpus 8 -- vllm serve Qwen/Qwen3-32B -tp 2 > serve.sh
  perflab render --as compose --gpus 8 --image vllm/vllm-openai:v0.17.1 -- vllm serve Qwen/Qwen3-32B -tp 2
  perflab render --as slurm --nodes 2 --gpus 8 --time 04:00:00 -- trtllm-serve Qwen/Qwen3-235B-A22B --tp_size 16
  perflab render --hosts a=10.0.0.1,b=10.0.0.2 --gpus 8 --interface ib0 -- vllm serve m -tp 8 -pp 2
  perflab render --as kubernetes --out k8s examples/quickstart.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(env, c.Flags(), args, c.ArgsLenAtDash() == 0)
		},
	}
	f.add(c.Flags())
	return c
}

func (f *renderFlags) add(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.as, "as", "script", "script, compose, slurm or kubernetes")
	fs.StringVar(&f.out, "out", "", "directory for the files (default standard output; a study needs one)")
	fs.StringVar(&f.gpu, "gpu", "", "accelerator, see perflab sim --list: the command is checked against it (default: not checked; of a study its own)")
	fs.IntVar(&f.gpus, "gpus", 1, "how many accelerators each machine has (of a study: its own)")
	fs.IntVar(&f.nodes, "nodes", 1, "machines, where their names are known only to slurm or kubernetes")
	fs.StringSliceVar(&f.hosts, "hosts", nil, "machines by name, or as name=address where replicas span them; script")
	fs.StringVar(&f.iface, "interface", "", "network interface on which the machines reach each other")
	fs.StringVar(&f.hca, "hca", "", "InfiniBand or RoCE adapters of the machines, as NCCL_IB_HCA takes them")
	fs.StringVar(&f.method, "method", "", "how a replica spans machines: ray, native, mpirun or rpc (default: what suits the engine)")
	fs.StringVar(&f.topology, "topology", "", "file with what nvidia-smi topo -m prints on the machines: replicas get devices that are close to each other")
	fs.StringVar(&f.version, "engine-version", "", "version of the engine, such as 0.17: it decides defaults and methods")
	fs.StringVar(&f.modelConfig, "model-config", "", "the model's config.json, for a model that perflab sim --list does not know")
	fs.StringVar(&f.name, "name", "", "name of the files and objects (default: from the model, or the study)")
	fs.IntVar(&f.port, "port", 8000, "port of the first replica; the others have the next ones")
	fs.DurationVar(&f.ready, "ready-timeout", 15*time.Minute, "how long replicas may take to become ready")
	fs.StringArrayVar(&f.images, "image", nil, "container image, of a study with several engines ENGINE=IMAGE for each; repeatable (default: the study's; for vLLM and SGLang of a known version the project's own)")
	fs.StringArrayVar(&f.mounts, "mount", nil, "SOURCE:TARGET[:ro], a directory for the containers; repeatable (a model's path is mounted anyway)")
	fs.StringVar(&f.shmSize, "shm-size", "", "of /dev/shm, such as 32g (default: the host's; kubernetes 32g)")
	fs.StringArrayVar(&f.ulimits, "ulimit", nil, "NAME=VALUE, such as memlock=-1; repeatable; compose")
	fs.StringVar(&f.partition, "partition", "", "slurm")
	fs.StringVar(&f.account, "account", "", "slurm")
	fs.StringVar(&f.timeLimit, "time", "", "time limit of the job, such as 04:00:00; slurm")
	fs.StringVar(&f.namespace, "namespace", "", "kubernetes")
}

// rendered is one configuration to write down.
type rendered struct {
	label   string
	name    string
	cmd     engine.Command
	gpu     arch.Accelerator // the zero one where it is not known
	image   string           // that the study names
	world   int              // devices of a replica
	bench   string
	notes   []string
	refused string
}

func (f *renderFlags) run(env Env, fs *pflag.FlagSet, args []string, command bool) error {
	format, ok := renderers()[f.as]
	if !ok {
		return usageError{fmt.Errorf("--as %q: use script, compose, slurm or kubernetes", f.as)}
	}
	if err := f.belongs(fs); err != nil {
		return usageError{err}
	}
	var all []rendered
	var err error
	switch {
	case command && len(args) > 0:
		all, err = f.command(args)
	case !command && len(args) == 1:
		all, err = f.study(fs, args[0])
	default:
		err = errors.New("perflab render needs one study file, or a serving command after -- (see perflab render --help)")
	}
	if err != nil {
		return usageUnlessOwn(err)
	}
	if len(all) > 1 && f.out == "" {
		return usageError{fmt.Errorf("the study tries %d configurations: --out DIR writes a file for each", len(all))}
	}
	if err := f.oneImage(all); err != nil {
		return usageError{err}
	}
	nodes, topologies, err := f.inventory()
	if err != nil {
		return usageError{err}
	}
	for i, r := range all {
		if r.refused != "" {
			continue
		}
		p, err := f.plan(&all[i], format, nodes, topologies)
		if err != nil {
			return usageUnlessOwn(fmt.Errorf("%s: %w", r.label, err))
		}
		text, err := format.write(p)
		if err != nil {
			return usageUnlessOwn(fmt.Errorf("%s: %w", r.label, err))
		}
		if err := f.write(env, p.Name+format.ext, text); err != nil {
			return err
		}
	}
	f.list(env, format, all)
	return nil
}

// belongs checks that no flag is given that the format has no use for.
func (f *renderFlags) belongs(fs *pflag.FlagSet) error {
	for _, only := range []struct{ flags, formats string }{
		{"hosts", "script"}, {"nodes", "script slurm kubernetes"}, {"image mount", "compose slurm kubernetes"}, {"shm-size", "compose kubernetes"},
		{"ulimit", "compose"}, {"partition account time", "slurm"}, {"namespace", "kubernetes"},
	} {
		for name := range strings.FieldsSeq(only.flags) {
			if formats := strings.Fields(only.formats); fs.Changed(name) && !slices.Contains(formats, f.as) {
				return fmt.Errorf("--%s is for --as %s, not %s", name, strings.Join(formats, " or "), f.as)
			}
		}
	}
	return nil
}

// usageUnlessOwn makes a usage error of what is neither of the study file nor of the
// engine.
func usageUnlessOwn(err error) error {
	if _, ok := errors.AsType[*engine.Rejection](err); ok {
		return err
	}
	if _, ok := errors.AsType[*study.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*engine.UsageError](err); ok {
		return err
	}
	return usageError{err}
}

// write puts a file into the directory, or prints it.
func (f *renderFlags) write(env Env, name, text string) error {
	if f.out == "" {
		_, err := fmt.Fprint(env.Stdout, text)
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return fmt.Errorf("create --out: %w", err)
	}
	if err := os.WriteFile(filepath.Join(f.out, name), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the %s: %w", f.as, err)
	}
	return nil
}

// list says which files were written, and what was refused.
func (f *renderFlags) list(env Env, format renderer, all []rendered) {
	if f.out == "" {
		if all[0].refused != "" {
			fmt.Fprintf(env.Stderr, "refused: %s\n", all[0].refused)
		}
		return
	}
	for _, r := range all {
		if r.refused != "" {
			fmt.Fprintf(env.Stdout, "%s: refused: %s\n", r.label, r.refused)
			continue
		}
		fmt.Fprintf(env.Stdout, "%s  %s\n", filepath.Join(f.out, r.name+format.ext), r.label)
	}
}

// command is the one configuration of a command line. One that the engine would
// refuse is an error.
func (f *renderFlags) command(args []string) ([]rendered, error) {
	cmd, err := engine.Parse(args)
	if err != nil {
		return nil, err
	}
	cmd.Version = f.version
	r := rendered{label: cmd.Engine, cmd: cmd, world: cmd.World(), name: cmp.Or(f.name, objectName(filepath.Base(cmd.Model)))}
	served := cmp.Or(cmd.Flag("--served-model-name"), cmd.Flag("--served_model_name"), cmd.Model)
	r.bench = "perflab bench --base-url http://HOST:PORT --model " + engine.Quote(served)
	if f.gpu == "" {
		r.notes = append(r.notes, "Not checked against the engine's rules: no --gpu was given.")
		return []rendered{r}, nil
	}
	gpu, err := arch.LookupAccelerator(f.gpu)
	if err != nil {
		return nil, err
	}
	machines := max(f.nodes, len(f.hosts))
	cfg, err := f.resolve(cmd, gpu, f.gpus*machines)
	if err != nil {
		return nil, err
	}
	r.world, r.gpu = cfg.GPUs, gpu
	r.notes = append(r.notes, cmd.Model+" on "+onHardware(gpu, machines, f.gpus))
	return []rendered{r}, nil
}

// resolve checks a command against its engine's rules, without a model where nothing is
// predicted of it.
func (f *renderFlags) resolve(cmd engine.Command, gpu arch.Accelerator, devices int) (engine.Config, error) {
	if e, err := engine.ByName(cmd.Engine); err == nil && e.MeasuredOnly {
		return cmd.Outline(gpu, devices)
	}
	model, err := lookupModel(cmd.Model, f.modelConfig)
	if err != nil {
		return engine.Config{}, err
	}
	return cmd.Resolve(model, gpu, devices)
}

// onHardware names what a configuration runs on.
func onHardware(gpu arch.Accelerator, machines, gpus int) string {
	if gpu.Platform == arch.CPU {
		return gpu.Title
	}
	return counted(machines, gpus) + " x " + gpu.Title
}

func counted(machines, gpus int) string {
	if machines > 1 {
		return fmt.Sprintf("%d x %d", machines, gpus)
	}
	return strconv.Itoa(gpus)
}

// study is every configuration of a study file, on its hardware unless flags say else.
func (f *renderFlags) study(fs *pflag.FlagSet, path string) ([]rendered, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the study: %w", err)
	}
	s, err := study.Parse(path, source)
	if err != nil {
		return nil, err
	}
	if s.Runtime.Kind == study.Existing {
		return nil, errors.New("the study measures an endpoint that is up already: there is nothing to start")
	}
	for _, name := range []string{"gpu", "engine-version", "model-config"} {
		if fs.Changed(name) {
			return nil, fmt.Errorf("--%s is for a command: the study has its own", name)
		}
	}
	machines := max(s.Hardware.Nodes, 1)
	if !fs.Changed("nodes") && len(f.hosts) == 0 {
		f.nodes = machines
	}
	if !fs.Changed("gpus") {
		f.gpus = s.Hardware.GPUs / machines
	}
	if err := f.site(fs, s); err != nil {
		return nil, err
	}
	gpu, err := arch.LookupAccelerator(s.Hardware.GPU)
	if err != nil {
		return nil, err
	}
	configurations, err := s.Configurations()
	if err != nil {
		return nil, err
	}
	var out []rendered
	for i, c := range configurations {
		label := c.Label
		if c.Stage != "" {
			label = c.Stage + ": " + c.Label
		}
		r := rendered{label: label, cmd: c.Command, gpu: gpu, image: s.Engines[c.Command.Engine].Image, world: c.Config.GPUs, bench: c.Bench}
		if s.Runtime.Docker != nil {
			r.image = cmp.Or(r.image, s.Runtime.Docker.Image)
		}
		r.name = objectName(fmt.Sprintf("%s-%d-%s", cmp.Or(f.name, s.Name), i+1, c.Label))
		r.notes = []string{fmt.Sprintf("Study %s, %s", s.Name, label),
			c.Command.Model + " on " + onHardware(gpu, max(f.nodes, len(f.hosts)), f.gpus)}
		if c.Refused != nil {
			r.refused = c.Refused.Reason
		}
		out = append(out, r)
	}
	return out, nil
}

var notObject = regexp.MustCompile(`[^a-z0-9]+`)

// objectName makes a name that files and objects may have.
func objectName(text string) string {
	const longest = 40
	name := strings.Trim(notObject.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = "serve-" + name
	}
	return strings.Trim(name[:min(len(name), longest)], "-")
}

// inventory is the machines, with all devices of each, and how these are connected.
func (f *renderFlags) inventory() ([]cluster.Node, map[string]cluster.Topology, error) {
	if f.gpus < 1 || f.nodes < 1 {
		return nil, nil, fmt.Errorf("--gpus %d --nodes %d: there is at least one of each", f.gpus, f.nodes)
	}
	devices := make([]int, f.gpus)
	for i := range devices {
		devices[i] = i
	}
	var nodes []cluster.Node
	add := func(name, addr string) {
		nodes = append(nodes, cluster.Node{Name: name, Addr: addr, Devices: devices, Interface: f.iface, HCA: f.hca})
	}
	switch {
	case len(f.hosts) > 0:
		for _, host := range f.hosts {
			name, addr, _ := strings.Cut(host, "=")
			add(name, cmp.Or(addr, name))
		}
	case f.as == "slurm" || f.as == "kubernetes":
		for i := range f.nodes {
			name := fmt.Sprintf("node-%d", i)
			add(name, render.Addr(name))
		}
	case f.nodes > 1 && f.as == "compose":
		return nil, nil, errors.New("a compose file describes one machine: use --as slurm or kubernetes, or script with --hosts")
	case f.nodes > 1:
		return nil, nil, errors.New("a script needs the machines by name: --hosts a=10.0.0.1,b=10.0.0.2")
	default:
		add("", "")
	}
	if f.topology == "" {
		return nodes, nil, nil
	}
	text, err := os.ReadFile(f.topology)
	if err != nil {
		return nil, nil, fmt.Errorf("read --topology: %w", err)
	}
	t, err := cluster.ParseTopology(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("--topology %s: %w", filepath.Base(f.topology), err)
	}
	topologies := map[string]cluster.Topology{}
	for _, n := range nodes {
		topologies[n.Name] = t
	}
	return nodes, topologies, nil
}

// plan deals the machines out to replicas and says what the site has.
func (f *renderFlags) plan(r *rendered, format renderer, nodes []cluster.Node, topologies map[string]cluster.Topology) (render.Plan, error) {
	e, err := engine.ByName(r.cmd.Engine)
	if err != nil {
		return render.Plan{}, err
	}
	p := render.Plan{
		Name: r.name, Port: f.port, Bench: r.bench, ShmSize: f.shmSize, Ulimits: f.ulimits,
		Partition: f.partition, Account: f.account, TimeLimit: f.timeLimit, Namespace: f.namespace,
		Spec: deploy.Spec{Name: r.label, Health: e.Health, Timeout: f.ready},
	}
	if p.Image, err = f.imageOf(r, format); err != nil {
		return p, err
	}
	if format.container && p.Image == "" {
		return p, fmt.Errorf("name the container image: --image IMAGE, or --image %s=IMAGE in a study of several engines", r.cmd.Engine)
	}
	if r.gpu.Platform != arch.CUDA { // whose variable is the default
		p.Spec.Visible = r.gpu.Platform.Visible()
	}
	if p.Spec.Visible != "" && format.container {
		return p, fmt.Errorf("--as %s asks for NVIDIA GPUs, and %s is none: use --as script or slurm", f.as, r.gpu.Title)
	}
	if nodes[0].Name != "" {
		p.Nodes = nodes
	}
	if f.as == "script" && len(p.Nodes) == 0 {
		r.cmd.Host = cmp.Or(r.cmd.Host, "127.0.0.1") // nobody else need reach it
	}
	places, leftover := cluster.Place(nodes, r.world, topologies)
	if f.method == cluster.RPC && len(nodes) > 1 { // one replica over whatever there is
		places, leftover = [][]cluster.Node{nodes}, nil
	}
	if len(places) == 0 {
		return p, fmt.Errorf("a replica takes %d GPUs, and there are %s: no whole number of machines gives them (--gpus says how many a machine has)", r.world, counted(len(nodes), f.gpus))
	}
	for _, place := range places {
		if len(place) > 1 && f.as == "script" && slices.ContainsFunc(place, func(n cluster.Node) bool { return net.ParseIP(n.Addr) == nil }) {
			return p, errors.New("a replica spans these hosts, and engines want addresses there: write --hosts a=10.0.0.1,b=10.0.0.2")
		}
		parts, err := cluster.Spread(r.cmd, place, f.spreadBy(place))
		if err != nil {
			return p, err
		}
		replica := deploy.Spread(parts)
		if r.gpu.Platform == arch.CPU {
			replica.Devices = nil
		}
		p.Spec.Replicas = append(p.Spec.Replicas, replica)
	}
	env := redact.Env(r.cmd.Env)
	shown := r.cmd
	shown.Env = env
	shown.Extra = redact.Argv(r.cmd.Extra)
	p.Comments = slices.Concat(r.notes, []string{"Command: " + shown.String(), replicasText(len(places), places[0], r.gpu)}, cluster.Remarks(r.cmd, places[0], f.spreadBy(places[0])))
	for _, n := range leftover {
		p.Comments = append(p.Comments, leftoverText(n))
	}
	return p, f.mountsOf(&p, r.cmd)
}

// spreadBy is the method where a replica spans machines.
func (f *renderFlags) spreadBy(place []cluster.Node) string {
	if len(place) == 1 {
		return ""
	}
	return f.method
}

func replicasText(n int, place []cluster.Node, gpu arch.Accelerator) string {
	if gpu.Platform == arch.CPU {
		return fmt.Sprintf("%d replicas", n)[:len("1 replica")+min(n-1, 1)]
	}
	text := fmt.Sprintf("%d replicas of %d GPUs", n, len(place[0].Devices)*len(place))
	if n == 1 {
		text = strings.Replace(text, "replicas", "replica", 1)
	}
	if len(place[0].Devices)*len(place) == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if len(place) > 1 {
		text += fmt.Sprintf(", over %d machines", len(place))
	}
	return text
}

func leftoverText(n cluster.Node) string {
	ids := make([]string, len(n.Devices))
	for i, d := range n.Devices {
		ids[i] = strconv.Itoa(d)
	}
	on := ""
	if n.Name != "" {
		on = " of " + n.Name
	}
	return fmt.Sprintf("Used by no replica, and allocated: GPU %s%s", strings.Join(ids, ", "), on)
}
