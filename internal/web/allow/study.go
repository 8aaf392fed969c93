package allow

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/study"
)

// Rules that several fields share.
var (
	fromEngines   = engineName
	fromHosts     = from("hosts", func(l List) []string { return l.Hosts })
	fromImages    = from("images", func(l List) []string { return l.Images })
	ofContainers  = exactly("containers", func(l List) []string { return l.Containers })
	ofHooks       = exactly("hooks", func(l List) []string { return l.Hooks })
	belowDirs     = below("dirs", func(l List) []string { return l.Dirs })
	belowSSHFiles = below("ssh_files", func(l List) []string { return l.SSHFiles })
)

// studyRules has a row for every field of a study file: see walk for the patterns.
func studyRules() map[string]rule {
	rules := map[string]rule{
		"name": name, "title": harmless, "seed": harmless, "strategy": harmless,
		"model": nameOrFile, "model_config.*": file,
		"hardware.gpu": harmless, "hardware.gpus": harmless, "hardware.nodes": harmless, "hardware.devices[]": word, "hardware.check": harmless,
		"hardware.price_per_hour": harmless, "hardware.host_memory_gib": harmless,
		"engines.*.version": word, "engines.*.image": fromImages, "engines.*.set.*": parameter, "engines.*.prefill.set.*": parameter, "engines.*.decode.set.*": parameter,
		"engines.*.env[]":  variable,
		"objective.metric": harmless, "objective.slos[]": harmless, "objective.weights.*": harmless, "objective.min_gain": harmless,
		"space.*[]": parameter, "priors[]": file, "earlier[]": file, "race.rounds": harmless, "race.short_load": harmless,
		"stages[].name": harmless,
		"budget.trials": harmless, "budget.time": harmless, "budget.gpu_hours": harmless,
		"reference.source": harmless,
	}
	// Flags and keys of configuration files are looked at as a whole: see Checker.flags and
	// Checker.configKeys.
	for _, p := range []string{"engines.*.flags[]", "engines.*.prefill.flags[]", "engines.*.decode.flags[]", "engines.*.router[]", "engines.*.file.*"} {
		rules[p] = harmless
	}
	for _, part := range []string{"baseline", "stages[].try[]", "arms[]", "candidates[]", "reference"} {
		maps.Copy(rules, under(part, map[string]rule{
			"label": harmless, "engine": fromEngines, "model": nameOrFile, "set.*": parameter, "published": harmless,
		}))
		if part != "reference" {
			rules[part+".fresh"] = harmless
		}
	}
	maps.Copy(rules, under("workloads[]", workloadRules()))
	maps.Copy(rules, under("workloads[]", map[string]rule{"name": name, "title": harmless, "sweep": harmless}))
	maps.Copy(rules, under("workloads[].find_max", same(harmless, "axis from to precision points requests seconds")))
	maps.Copy(rules, under("runtime", runtimeRules()))
	maps.Copy(rules, under("bench", same(harmless, "backend cache num_warmups block goodput[] telemetry_interval_s")))
	maps.Copy(rules, under("accuracy", same(harmless, "limit max_tokens max_concurrency prompt agreement declared.base declared.effects[].when.* declared.effects[].change declared.effects[].flips declared.effects[].agreement")))
	rules["accuracy.questions"] = file
	return rules
}

// workloadRules are those of a workload, by its keys.
func workloadRules() map[string]rule {
	rules := same(harmless, `dataset_name num_prompts seed request_rate arrival burstiness speed max_concurrency ramp_up_strategy ramp_up_start_rps ramp_up_end_rps
		ignore_eos random_input_len random_output_len random_range_ratio random_prefix_len sharegpt_output_len disable_shuffle no_oversample output_len
		custom_output_len steps duration until_precision until_metric turns turn_input_len turn_output_len system_len think_time history no_session_affinity session_header start_ratio max_idle max_context over_context
		lora_modules[] lora_assignment random_images random_image_size nonce random_rng random_ids random_batch_size scenario sharegpt_filter
		sonnet_input_len sonnet_output_len sonnet_prefix_len prefix_repetition_prefix_len prefix_repetition_suffix_len prefix_repetition_num_prefixes
		prefix_repetition_output_len gsp_num_groups gsp_prompts_per_group gsp_system_prompt_len gsp_question_len gsp_output_len gsp_zipf_alpha
		hf_name hf_output_len burstgpt_model`)
	rules["dataset_path"], rules["tokenizer"] = nameOrFile, nameOrFile
	rules["hf_subset"], rules["hf_split"] = name, name
	return rules
}

// runtimeRules are those of the runtime, by its keys.
func runtimeRules() map[string]rule {
	rules := same(harmless, `ready_timeout_s silence_timeout_s direct spread startup_s limits.open_files limits.memory_gib limits.locked_memory limits.stack
		limits.cpus limits.no_core limits.nice
		kubernetes.reach kubernetes.download kubernetes.pending_timeout_s kubernetes.resource kubernetes.shm_size kubernetes.cpu kubernetes.memory
		kubernetes.load.agents kubernetes.load.cpu kubernetes.load.memory
		docker.pull docker.platform docker.gpus docker.network docker.shm_size docker.cpus docker.cpuset docker.memory docker.labels[] docker.init
		machines[].port machines[].speed hosts[].port hosts[].gpus`)
	maps.Copy(rules, map[string]rule{
		"kind": kind, "urls[]": baseURL, "service": podSetting("service"), "port": word, "dir": belowDirs, "ssh_config": belowSSHFiles, "hooks.start": ofHooks, "hooks.stop": ofHooks,
		"docker.image": fromImages, "docker.container": ofContainers, "docker.docker_host": fromHosts, "docker.address": host, "docker.mounts[]": mount, "docker.env[]": variable,
		"kubernetes.image": fromImages, "kubernetes.load.image": fromImages, "kubernetes.load.hub": host, "kubernetes.pod.*": harmless, // the template is looked at as a whole: see Checker.podTemplate
		"machines[].docker_host": fromHosts, "labels.*": word,
	})
	// The settings that lead out of a container, or into it as somebody else.
	for key := range strings.FieldsSeq("container_runtime ipc pid ulimits[] user workdir entrypoint[] extra_hosts[] devices[] group_add[] cap_add[] security_opt[] privileged") {
		rules["docker."+key] = setting(strings.TrimSuffix(key, "[]"))
	}
	// Where pods are made, and what they may have of the cluster.
	for key := range strings.FieldsSeq("kubeconfig context namespace mounts[] secrets.* pull_secrets[] queue load.keys") {
		rules["kubernetes."+key] = podSetting(strings.TrimSuffix(strings.TrimSuffix(key, "[]"), ".*"))
	}
	for _, list := range []string{"hosts[]", "machines[]"} { // whom they name together: see Checker.machines
		maps.Copy(rules, under(list, same(word, "name address user devices[]")))
		rules[list+".identity"] = belowSSHFiles
	}
	maps.Copy(rules, under("hosts[]", same(word, "interface hca")))
	return rules
}

// same is one rule for several keys.
func same(r rule, keys string) map[string]rule {
	rules := map[string]rule{}
	for key := range strings.FieldsSeq(keys) {
		rules[key] = r
	}
	return rules
}

// under puts rules below a pattern.
func under(pattern string, rules map[string]rule) map[string]rule {
	out := map[string]rule{}
	for key, r := range rules {
		out[field.Join(pattern, key)] = r
	}
	return out
}

// Study says what of a study is not allowed. It opens nothing that the study names.
func (c Checker) Study(f *study.File) error {
	rules := studyRules()
	var errs []error
	walk(reflect.ValueOf(f), "", "", func(pattern, at string, v reflect.Value) {
		r, decided := rules[pattern]
		switch {
		case !decided:
			errs = append(errs, field.Errorf(at, "nobody has decided what this may lead to: it cannot be launched from a browser"))
		case r != nil:
			errs = append(errs, r(c, at, fmt.Sprint(v.Interface())))
		}
	})
	for _, name := range slices.Sorted(maps.Keys(f.Engines)) {
		at, use := field.Join("engines", name), f.Engines[name]
		errs = append(errs, engineName(c, at, name), c.configKeys(at+".file", use.File))
		if f.Runtime.Kind == study.Predicted { // which starts nothing: they are read as facts alone
			continue
		}
		for _, part := range []struct {
			key   string
			flags []string
		}{{"flags", use.Flags}, {"prefill.flags", use.Prefill.Flags}, {"decode.flags", use.Decode.Flags}, {"router", use.Router}} {
			errs = append(errs, c.flags(field.Join(at, part.key), part.flags))
		}
	}
	errs = append(errs, c.searched(f), c.machines(f.Runtime))
	if k := f.Runtime.Kubernetes; k != nil {
		errs = append(errs, c.podTemplate("runtime.kubernetes.pod", "pod", k.Template))
	}
	return errors.Join(errs...)
}

// engineName is an engine of the catalogue, which is started by the name that it has there.
func engineName(c Checker, at, value string) error {
	if _, err := engine.ByName(value); err != nil {
		return field.Errorf(at, "%v", err)
	}
	if len(c.Engines) == 0 || slices.Contains(c.Engines, value) {
		return nil
	}
	return refused(at, value, "engines", value)
}

// searched looks at what a space names as engines and models.
func (c Checker) searched(f *study.File) error {
	var errs []error
	for i, name := range f.Space["engine"] {
		errs = append(errs, engineName(c, field.Index("space.engine", i), name))
	}
	for i, name := range f.Space["model"] {
		errs = append(errs, nameOrFile(c, field.Index("space.model", i), name))
	}
	return errors.Join(errs...)
}

// kind is how engines are started. Containers and other machines are closed where nothing of the
// kind is allowed.
func kind(c Checker, at, value string) error {
	if len(c.Runtimes) > 0 && !slices.Contains(c.Runtimes, value) {
		return refused(at, value, "runtimes", value)
	}
	switch {
	case value == study.Docker && len(c.Images)+len(c.Containers) == 0:
		return field.Errorf(at, "containers are not allowed: an administrator adds images: [NAME:TAG] to the allow list of perflab serve")
	case value == study.Kubernetes && (len(c.Images) == 0 || len(c.Kubernetes) == 0):
		return field.Errorf(at, "pods are not allowed: an administrator adds images: [NAME:TAG] and kubernetes: [namespace=NAME] to the allow list of perflab serve")
	case (value == study.SSH || value == study.Fleet) && len(c.Hosts) == 0:
		return field.Errorf(at, "other machines are not allowed: an administrator adds hosts: [NAME] to the allow list of perflab serve")
	}
	return nil
}

// flags looks at an engine's own flags, each with its value.
func (c Checker) flags(at string, words []string) error {
	var errs []error
	for i := 0; i < len(words); i++ {
		flag, first := words[i], i
		if strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			flag += "=" + words[i]
		}
		if !matches(c.Flags, flag) {
			errs = append(errs, refused(field.Index(at, first), flag, "flags", flag))
		}
	}
	return errors.Join(errs...)
}

// configKeys looks at the keys of an engine's configuration file.
func (c Checker) configKeys(at string, file map[string]any) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if !matches(c.EngineConfig, key) {
			errs = append(errs, refused(field.Join(at, key), key, "engine_config", key))
		}
	}
	return errors.Join(errs...)
}

// podTemplate looks at what a template says of pods, each value by its path.
func (c Checker) podTemplate(at, path string, v any) error {
	var errs []error
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, c.podTemplate(field.Join(at, key), field.Join(path, key), v[key]))
		}
	case []any:
		for i, e := range v {
			errs = append(errs, c.podTemplate(field.Index(at, i), path, e))
		}
	default:
		if value := fmt.Sprint(v); !matches(c.Kubernetes, path+"="+value) {
			errs = append(errs, refused(at, value, "kubernetes", path+"="+value))
		}
	}
	return errors.Join(errs...)
}

// machines looks at which machines a study reaches, and as whom. Simulated ones are names alone.
func (c Checker) machines(r study.Runtime) error {
	if r.Modelled() {
		return nil
	}
	var errs []error
	see := func(at, name, address, user string) {
		target := cmp.Or(address, name)
		if user != "" {
			target = user + "@" + target
		}
		if !matches(c.Hosts, target) {
			errs = append(errs, refused(at, target, "hosts", target))
		}
	}
	if len(r.Labels) > 0 && !matches(c.Hosts, "*") { // which lead to any machine of the fleet
		errs = append(errs, field.Errorf("runtime.labels", "machines by labels are not allowed, for they may be any of the fleet: name them under runtime.machines, or an administrator adds hosts: ['*'] to the allow list of perflab serve"))
	}
	for i, h := range r.Hosts {
		see(field.Index("runtime.hosts", i), h.Name, h.Address, h.User)
	}
	for i, m := range r.Machines {
		at := field.Index("runtime.machines", i)
		if r.Kind == study.Docker {
			if m.Address != "" {
				errs = append(errs, host(c, at+".address", m.Address))
			}
			continue
		}
		see(at, m.Name, m.Address, m.User)
	}
	return errors.Join(errs...)
}
