package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/input"
	"perflab/internal/redact"
	"perflab/internal/study"
)

// renderFlags are the flags of perflab render.
type renderFlags struct {
	as  string
	out string

	secrets redact.Values // of the study

	gpu         string
	topology    string
	version     string
	modelConfig string
	name        string
	pools       poolFlags
	render.Site
}

const renderLong = `Write down how a serving command would be started, instead of starting it: for
sites that allow no direct start. Nothing is started and nothing is asked.

  script      bash: replicas with ports and devices of their own, a wait for each
              to be ready, everything ended at Ctrl-C; other hosts by ssh
  compose     docker compose: a service for each replica, on one machine, or for
              each engine behind a router (--disaggregation) and the router
  slurm       a batch file: a step for each process, ranks of TensorRT-LLM by srun
  kubernetes  Deployment and Service; over several nodes a LeaderWorkerSet; a
              StatefulSet for each pool of engines behind a router

GPUs that one copy does not use are filled with replicas, as perflab tune deploys
them; those left over are named. A command that takes more GPUs than a machine
has spans machines: over Ray or the engine's own ranks (--method).

A study file gives one file for each configuration that it tries: the baseline,
and each candidate on top of it. Of one with runtime kubernetes the manifests are
those that perflab tune starts: same volumes, secrets, queue and pod template. Each file ends by saying, or says at its head,
which perflab bench command measures it. Secrets are not written down: the files
refer to the environment of who runs them.`

// NewRender is perflab render: a deployment written down for others to start.
func NewRender(env console.Env) *cobra.Command {
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
	fs.IntVar(&f.GPUs, "gpus", 1, "how many accelerators each machine has (of a study: its own)")
	fs.IntVar(&f.Nodes, "nodes", 1, "machines, where their names are known only to slurm or kubernetes")
	fs.StringSliceVar(&f.Hosts, "hosts", nil, "machines by name, or as name=address where replicas span them; script")
	fs.StringVar(&f.Interface, "interface", "", "network interface on which the machines reach each other")
	fs.StringVar(&f.HCA, "hca", "", "InfiniBand or RoCE adapters of the machines, as NCCL_IB_HCA takes them")
	fs.StringVar(&f.Method, "method", "", "how a replica spans machines: ray, native, mpirun or rpc (default: what suits the engine)")
	fs.StringVar(&f.topology, "topology", "", "file with what nvidia-smi topo -m prints on the machines: replicas get devices that are close to each other")
	fs.StringVar(&f.version, "engine-version", "", "version of the engine, such as 0.17: it decides defaults and methods")
	fs.StringVar(&f.modelConfig, "model-config", "", "the model's config.json, for a model that perflab sim --list does not know")
	f.pools.add(fs)
	fs.StringVar(&f.name, "name", "", "name of the files and objects (default: from the model, or the study)")
	fs.IntVar(&f.Port, "port", 8000, "port of the first replica; the others have the next ones")
	fs.DurationVar(&f.Ready, "ready-timeout", 15*time.Minute, "how long replicas may take to become ready")
	fs.StringArrayVar(&f.Images, "image", nil, "container image, of a study with several engines ENGINE=IMAGE for each; router=IMAGE of the router before prefill and decode engines; repeatable (default: the study's; for vLLM and SGLang of a known version the project's own)")
	fs.StringArrayVar(&f.Mounts, "mount", nil, "SOURCE:TARGET[:ro], a directory for the containers, in kubernetes also claim:NAME:TARGET[:ro] and image:REFERENCE:TARGET; repeatable (a model's path is mounted anyway)")
	fs.StringVar(&f.ShmSize, "shm-size", "", "of /dev/shm, such as 32g (default: the host's; kubernetes 32g)")
	fs.StringArrayVar(&f.Ulimits, "ulimit", nil, "NAME=VALUE, such as memlock=-1; repeatable; compose")
	fs.StringVar(&f.Partition, "partition", "", "slurm")
	fs.StringVar(&f.Account, "account", "", "slurm")
	fs.StringVar(&f.TimeLimit, "time", "", "time limit of the job, such as 04:00:00; slurm")
	fs.StringVar(&f.Namespace, "namespace", "", "kubernetes")
}

// renderConfig is a configuration to write down, or why the engine would not
// start.
type renderConfig struct {
	render.Configuration
	refused string
}

func (f *renderFlags) run(env console.Env, fs *pflag.FlagSet, args []string, command bool) error {
	formats := render.Formats()
	i := slices.IndexFunc(formats, func(x render.Format) bool { return x.Name == f.as })
	if i < 0 {
		return console.Usage(fmt.Errorf("--as %q: use script, compose, slurm or kubernetes", f.as))
	}
	if err := f.checkFormat(fs); err != nil {
		return console.Usage(err)
	}
	f.Format = formats[i]
	var all []renderConfig
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
		return usageUnlessTyped(err)
	}
	env = env.WithSecrets(f.secrets)
	if len(all) > 1 && f.out == "" {
		return console.Usage(fmt.Errorf("the study tries %d configurations: --out DIR writes a file for each", len(all)))
	}
	if err := f.site(all); err != nil {
		return console.Usage(err)
	}
	for _, c := range all {
		if c.refused != "" {
			continue
		}
		p, err := f.Plan(c.Configuration)
		if err != nil {
			return usageUnlessTyped(fmt.Errorf("%s: %w", c.Label, err))
		}
		text, err := f.Format.Write(p)
		if err != nil {
			return usageUnlessTyped(fmt.Errorf("%s: %w", c.Label, err))
		}
		if err := f.write(env, p.Name+f.Format.Ext, text); err != nil {
			return err
		}
	}
	f.list(env, all)
	return nil
}

// site checks what the flags say of the machines and their containers.
func (f *renderFlags) site(all []renderConfig) error {
	configurations := make([]render.Configuration, len(all))
	for i, c := range all {
		configurations[i] = c.Configuration
	}
	if err := f.Validate(configurations); err != nil || f.topology == "" {
		return err
	}
	text, err := input.File(f.topology, mostText)
	if err != nil {
		return fmt.Errorf("read --topology: %w", err)
	}
	t, err := cluster.ParseTopology(string(text))
	if err != nil {
		return fmt.Errorf("--topology %s: %w", filepath.Base(f.topology), err)
	}
	f.Topology = &t
	return nil
}

// checkFormat checks that no flag is given that the format has no use for.
func (f *renderFlags) checkFormat(fs *pflag.FlagSet) error {
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

// write puts a file into the directory, or prints it.
func (f *renderFlags) write(env console.Env, name, text string) error {
	if f.out == "" {
		_, err := fmt.Fprint(env.Stdout, text)
		return err
	}
	return env.WriteText(filepath.Join(f.out, name), func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

// list says which files were written, and what was refused.
func (f *renderFlags) list(env console.Env, all []renderConfig) {
	if f.out == "" {
		if all[0].refused != "" {
			fmt.Fprintf(env.Stderr, "refused: %s\n", all[0].refused)
		}
		return
	}
	for _, r := range all {
		if r.refused != "" {
			fmt.Fprintf(env.Stdout, "%s: refused: %s\n", r.Label, r.refused)
			continue
		}
		fmt.Fprintf(env.Stdout, "%s  %s\n", filepath.Join(f.out, r.Name+f.Format.Ext), r.Label)
	}
}

// command is the one configuration of a command line. One that the engine would
// refuse is an error.
func (f *renderFlags) command(args []string) ([]renderConfig, error) {
	cmd, err := typed(args, f.version)
	if err == nil {
		cmd, err = f.pools.apply(cmd)
	}
	if err != nil {
		return nil, err
	}
	r := renderConfig{Configuration: render.Configuration{
		Label: cmd.Engine, Command: cmd, World: cmd.World(), Name: cmp.Or(f.name, render.ObjectName(filepath.Base(cmd.Model))),
	}}
	served := cmp.Or(cmd.Flag("--served-model-name"), cmd.Flag("--served_model_name"), cmd.Model)
	r.Bench = "perflab bench --base-url http://HOST:PORT --model " + engine.Quote(served)
	if f.gpu == "" {
		r.Notes = append(r.Notes, "Not checked against the engine's rules: no --gpu was given.")
		return []renderConfig{r}, nil
	}
	gpu, err := arch.LookupAccelerator(f.gpu)
	if err != nil {
		return nil, err
	}
	machines := max(f.Nodes, len(f.Hosts))
	cfg, err := f.resolve(cmd, gpu, f.GPUs*machines)
	if err != nil {
		return nil, err
	}
	r.World, r.GPU = cfg.GPUs, gpu
	r.Notes = append(r.Notes, cmd.Model+" on "+render.Hardware(gpu, machines, f.GPUs))
	return []renderConfig{r}, nil
}

// resolve checks a command against its engine's rules, without a model where nothing is
// predicted of it.
func (f *renderFlags) resolve(cmd engine.Command, gpu arch.Accelerator, devices int) (engine.Config, error) {
	e, err := engine.ByName(cmd.Engine)
	if err != nil {
		return engine.Config{}, err
	}
	var model arch.Model
	if !e.MeasuredOnly {
		if model, err = flagset.LookupModel(cmd.Model, f.modelConfig); err != nil {
			return engine.Config{}, err
		}
	}
	return cmd.Outline(model, gpu, devices)
}

// study is every configuration of a study file, on its hardware unless flags say else.
func (f *renderFlags) study(fs *pflag.FlagSet, path string) ([]renderConfig, error) {
	source, err := study.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the study: %w", err)
	}
	s, err := study.Parse(path, source)
	if err == nil {
		err = s.Unasked()
	}
	if err != nil {
		return nil, err
	}
	f.secrets = s.Secrets()
	if s.Runtime.Kind == study.Existing {
		return nil, errors.New("the study measures an endpoint that is up already: there is nothing to start")
	}
	for _, name := range append(poolFlagNames, "gpu", "engine-version", "model-config") {
		if fs.Changed(name) {
			return nil, fmt.Errorf("--%s is for a command: the study has its own", name)
		}
	}
	machines := max(s.Hardware.Nodes, 1)
	if !fs.Changed("nodes") && len(f.Hosts) == 0 {
		f.Nodes = machines
	}
	if !fs.Changed("gpus") {
		f.GPUs = s.Hardware.GPUs / machines
	}
	if err := f.siteOf(fs, s); err != nil {
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
	var out []renderConfig
	for i, c := range configurations {
		r := f.configuration(s, gpu, c)
		r.Name = render.ObjectName(fmt.Sprintf("%s-%d-%s", cmp.Or(f.name, s.Name), i+1, c.Label))
		out = append(out, r)
	}
	return out, nil
}

// configuration is one configuration of a study.
func (f *renderFlags) configuration(s *study.Study, gpu arch.Accelerator, c study.Listed) renderConfig {
	label := c.Label
	if c.Stage != "" {
		label = c.Stage + ": " + c.Label
	}
	r := renderConfig{Configuration: render.Configuration{
		Label: label, Command: c.Command, GPU: gpu, Image: s.Engines[c.Command.Engine].Image, World: c.Config.GPUs, Bench: c.Bench,
		Notes: []string{fmt.Sprintf("Study %s, %s", s.Name, label), c.Command.Model + " on " + render.Hardware(gpu, max(f.Nodes, len(f.Hosts)), f.GPUs)},
	}}
	if s.Runtime.Docker != nil {
		r.Image = cmp.Or(r.Image, s.Runtime.Docker.Image)
	}
	if s.Runtime.Kubernetes != nil {
		r.Image = cmp.Or(r.Image, s.Runtime.Kubernetes.Image)
	}
	if c.Refused != nil {
		r.refused = c.Refused.Reason
	}
	return r
}

// siteOf takes from the study what flags leave open of its machines and containers.
func (f *renderFlags) siteOf(fs *pflag.FlagSet, s *study.Study) error {
	if f.as == "script" && len(f.Hosts) == 0 && !fs.Changed("nodes") {
		for _, h := range s.Runtime.Hosts {
			f.Hosts = append(f.Hosts, h.Name+"="+cmp.Or(h.Address, h.Name))
			f.Interface, f.HCA = cmp.Or(f.Interface, h.Interface), cmp.Or(f.HCA, h.HCA)
			if h.GPUs != 0 && h.GPUs != f.GPUs && !fs.Changed("gpus") {
				return errors.New("the study's hosts have different numbers of gpus, which a rendered file cannot: name alike ones with --hosts and --gpus")
			}
		}
	}
	if k := s.Runtime.Kubernetes; k != nil && f.as == render.KubernetesFormat {
		f.Pods = k.Pods
	}
	d := s.Runtime.Docker
	if d == nil || !f.Format.Container {
		return nil
	}
	if len(f.Mounts) == 0 {
		f.Mounts = d.Mounts
	}
	f.ShmSize = cmp.Or(f.ShmSize, d.ShmSize)
	if f.as == "compose" && len(f.Ulimits) == 0 {
		f.Ulimits = d.Ulimits
	}
	return nil
}
