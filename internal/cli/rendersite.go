package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/study"
)

// site takes from the study what flags leave open of its machines and containers.
func (f *renderFlags) site(fs *pflag.FlagSet, s *study.Study) error {
	if f.as == "script" && len(f.hosts) == 0 && !fs.Changed("nodes") {
		for _, h := range s.Runtime.Hosts {
			f.hosts = append(f.hosts, h.Name+"="+cmp.Or(h.Address, h.Name))
			f.iface, f.hca = cmp.Or(f.iface, h.Interface), cmp.Or(f.hca, h.HCA)
			if h.GPUs != 0 && h.GPUs != f.gpus && !fs.Changed("gpus") {
				return errors.New("the study's hosts have different numbers of gpus, which a rendered file cannot: name alike ones with --hosts and --gpus")
			}
		}
	}
	d := s.Runtime.Docker
	if d == nil || !renderers()[f.as].container {
		return nil
	}
	if len(f.mounts) == 0 {
		f.mounts = d.Mounts
	}
	f.shmSize = cmp.Or(f.shmSize, d.ShmSize)
	if f.as == "compose" && len(f.ulimits) == 0 {
		f.ulimits = d.Ulimits
	}
	return nil
}

// imageOf is the image to run in, "" where none is named or known: that of the flags
// for this engine or for any, the study's, the project's own of the version.
func (f *renderFlags) imageOf(r *rendered, format renderer) (string, error) {
	any := ""
	for _, text := range f.images {
		name, image, paired := strings.Cut(text, "=")
		switch {
		case paired && name == r.cmd.Engine:
			return image, nil
		case paired:
			if _, err := engine.ByName(name); err != nil {
				return "", fmt.Errorf("--image %q: %w", text, err)
			}
		case any != "":
			return "", fmt.Errorf("--image names two images, %s and %s: say which engine each is of, as in %s=%s", any, text, r.cmd.Engine, any)
		default:
			any = text
		}
	}
	version := strings.TrimPrefix(r.cmd.Version, "v")
	switch image := cmp.Or(any, r.image); {
	case image != "" || !format.container || version == "":
		return image, nil
	case r.cmd.Engine == "vllm":
		return "vllm/vllm-openai:v" + version, nil
	case r.cmd.Engine == "sglang":
		return "lmsysorg/sglang:v" + version, nil
	}
	return "", nil
}

// oneImage checks that an image which is for any engine is not for several.
func (f *renderFlags) oneImage(all []rendered) error {
	names := map[string]bool{}
	for _, r := range all {
		names[r.cmd.Engine] = true
	}
	for _, text := range f.images {
		if !strings.Contains(text, "=") && len(names) > 1 {
			return fmt.Errorf("--image %s would be of %s alike: write --image ENGINE=IMAGE for each", text, strings.Join(slices.Sorted(maps.Keys(names)), " and "))
		}
	}
	return nil
}

// mountsOf gives containers what they need of the machine: the directories named, the
// model where it is a path, else the cache of downloads; and a cache of compiled
// kernels, which replicas must not share.
func (f *renderFlags) mountsOf(p *render.Plan, cmd engine.Command) error {
	for _, text := range f.mounts {
		source, rest, ok := strings.Cut(text, ":")
		target, mode, _ := strings.Cut(rest, ":")
		if !ok || source == "" || !strings.HasPrefix(target, "/") || mode != "" && mode != "ro" {
			return fmt.Errorf("--mount %q: write it as /models:/models:ro", text)
		}
		p.Mounts = append(p.Mounts, render.Mount{Source: source, Target: target, ReadOnly: mode == "ro"})
	}
	if p.Image == "" {
		return nil
	}
	if filepath.IsAbs(cmd.Model) && len(f.mounts) == 0 {
		p.Mounts = append(p.Mounts, render.Mount{Source: cmd.Model, Target: cmd.Model, ReadOnly: true})
	} else if f.as == "compose" && len(f.mounts) == 0 {
		p.Mounts = append(p.Mounts, render.Mount{Source: "${HF_HOME:-${HOME}/.cache/huggingface}", Target: "/root/.cache/huggingface"})
	}
	switch cmd.Engine {
	case "vllm":
		p.Caches = []string{"/root/.cache/vllm"}
	case "trtllm":
		if len(p.Ulimits) == 0 {
			p.Ulimits = []string{"memlock=-1", "stack=67108864"}
		}
	}
	return nil
}
