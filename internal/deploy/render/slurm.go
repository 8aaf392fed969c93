package render

import (
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/engine"
)

// Slurm is a batch file: the job's nodes are the plan's in their order, and every
// process is a step on one of them. What mpirun would start srun does, one task for
// each device.
func Slurm(p Plan) (string, error) {
	all, err := p.processes(false)
	if err != nil {
		return "", err
	}
	s := shell{plan: p, slurm: true}
	if len(p.Nodes) == 0 {
		return "", missing("a Slurm job needs its nodes: say how many")
	}
	per := 0
	for _, list := range all {
		for _, q := range list {
			for _, d := range q.devices {
				if i, err := strconv.Atoi(d); err == nil { // a job is given devices by their number
					per = max(per, 1+i)
				}
			}
			if q.node == "" && len(p.Nodes) > 1 {
				return "", missing("%s names no node, and the job has %d", q.name, len(p.Nodes))
			}
		}
	}
	s.line("#!/bin/bash")
	s.directive("job-name", p.Name)
	s.directive("nodes", strconv.Itoa(len(p.Nodes)))
	if per > 0 {
		s.directive("gres", fmt.Sprintf("gpu:%d", per))
	}
	s.directive("exclusive", "-")
	s.directive("partition", p.Partition)
	s.directive("account", p.Account)
	s.directive("time", p.TimeLimit)
	s.directive("output", p.Name+"-%j.log")
	s.b.WriteString(p.head("", "Submit it: sbatch "+p.Name+".sbatch. It runs until it is cancelled or a process ends."))
	s.line("set -euo pipefail")
	s.line("set -m # each step leads a group of its own")
	s.line("dir=$SLURM_SUBMIT_DIR/%s-$SLURM_JOB_ID # logs and files: a directory that every node has", p.Name)
	s.line("timeout_s=%d grace_s=${GRACE_S:-20}", p.timeoutS())
	s.needs(secrets(all))
	s.b.WriteString(commonShell)
	s.addresses(per)
	s.start(all)
	s.b.WriteString(waitShell)
	return s.b.String(), nil
}

func (s *shell) directive(name, value string) {
	switch value {
	case "":
	case "-":
		s.line("#SBATCH --%s", name)
	default:
		s.line("#SBATCH --%s=%s", name, strings.Join(strings.Fields(value), ""))
	}
}

// addresses finds out the job's nodes and at which address each is reached: of the
// named interface where there is one.
func (s *shell) addresses(per int) {
	s.b.WriteString(`
mkdir -p "$dir"
mapfile -t node < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
`)
	s.line("[ \"${#node[@]}\" -ge %d ] || fail \"the job has ${#node[@]} nodes and needs %[1]d\"", len(s.plan.Nodes))
	container := ""
	if s.plan.Image != "" {
		image := engine.Quote(s.plan.Image)
		if s.plan.ownImage() { // the routers have theirs when they start
			s.line("image=%s", image)
			image = `"$image"`
		}
		container = " --container-image=" + image + " --container-mounts=\"$dir\":\"$dir\""
		for _, m := range s.plan.Mounts {
			container += "," + engine.Quote(m.Source+":"+m.Target)
			if m.ReadOnly {
				container += ":ro"
			}
		}
	}
	s.line("addr=()")
	for i, n := range s.plan.Nodes {
		show := "hostname --ip-address"
		if n.Interface != "" {
			show = "ip -4 -o addr show dev " + engine.Quote(n.Interface)
		}
		s.line("addr+=(\"$(srun --overlap --nodes=1 --ntasks=1 -w \"${node[%d]}\" %s | grep -oE '([0-9]+\\.){3}[0-9]+' | head -n 1)\")", i, show)
	}
	gres := ""
	if per > 0 {
		gres = fmt.Sprintf(" --gres=gpu:%d", per)
	}
	s.b.WriteString(`
finish() {
  local status=$?
  trap - EXIT INT TERM
  end_all
  exit "$status"
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

launch() { # NAME STEP KEY=value... COMMAND...
  local name=$1
  local -a step
  read -ra step <<<"$2"
  shift 2
  srun --overlap` + gres + container + ` "${step[@]}" env "$@" >"$dir/$name.log" 2>&1 </dev/null &
  started "$name" "$!"
}

put_file() { printf '%s' "$3" >"$2"; }
`)
}
