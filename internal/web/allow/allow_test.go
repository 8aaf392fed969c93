package allow

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"perflab/internal/study"
)

// refusals are the lines of an error.
func refusals(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func kept(t *testing.T, text string) *study.File {
	t.Helper()
	f, err := study.Kept([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return f
}

// place is a checker whose directory has a data file, a link out of it, and one that dangles.
func place(t *testing.T, l List) Checker {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for _, d := range []string{"data", "models"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{secret, filepath.Join(dir, "data", "rows.jsonl"), filepath.Join(dir, "models", "tiny")} {
		if err := os.WriteFile(f, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": filepath.Dir(secret), "nowhere": filepath.Join(dir, "absent"), "in": filepath.Join(dir, "data", "rows.jsonl")} {
		if err := os.Symlink(to, filepath.Join(dir, "data", name)); err != nil {
			t.Fatal(err)
		}
	}
	return Checker{List: l, Dir: dir, Roots: []string{filepath.Join(dir, "data")}}
}

const minimal = `
name: a
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
`

// TestStudy: each way out of a study is closed, and what opens it is in the refusal.
func TestStudy(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // the start of the refusal
		open       List   // with which it is allowed; the zero list: nothing opens it
	}{
		{"nothing special", "runtime: {kind: simulated}\nbaseline: {label: a, engine: vllm, set: {tp: 2}}", "", List{}},
		{"predicted", "runtime: {kind: predicted}", "", List{}},
		{"process", "runtime: {kind: process}", "", List{}},
		{"runtime", "runtime: {kind: process}", "", List{Runtimes: []string{"process"}}},
		{"hook", "runtime: {kind: existing, hooks: {start: rm -rf /}}",
			`runtime.hooks.start: "rm -rf /" is not allowed: an administrator adds hooks: ['rm -rf /'] to the allow list of perflab serve`, List{Hooks: []string{"rm -rf /"}}},
		{"stop hook", "runtime: {kind: existing, hooks: {stop: 'echo *'}}", `runtime.hooks.stop: "echo *" is not allowed`, List{Hooks: []string{"echo *"}}},
		{"image", "runtime: {kind: docker, docker: {image: evil/image}}", `runtime.docker.image: "evil/image" is not allowed`, List{Images: []string{"evil/*"}}},
		{"engine's image", "runtime: {kind: docker}\nengines: {vllm: {image: evil:1}}", `engines.vllm.image: "evil:1" is not allowed`, List{Images: []string{"evil:1"}}},
		{"docker alone", "runtime: {kind: docker}", "runtime.kind: containers are not allowed", List{Images: []string{"a"}}},
		{"container", "runtime: {kind: docker, docker: {container: db}}", `runtime.docker.container: "db" is not allowed`, List{Containers: []string{"db"}}},
		{"mount", "runtime: {docker: {mounts: ['/etc:/etc']}}", `runtime.docker.mounts[0]: "/etc:/etc" is not allowed`, List{Mounts: []string{"/etc"}}},
		{"mount below", "runtime: {docker: {mounts: ['/usr/share/../lib:/x:ro']}}", `runtime.docker.mounts[0]: "/usr/share/../lib:/x:ro" is not allowed`, List{Mounts: []string{"/usr"}}},
		{"home", "runtime: {docker: {mounts: ['~/.ssh:/x']}}", `runtime.docker.mounts[0]: "~/.ssh" begins with ~`, List{}},
		{"volume", "runtime: {docker: {mounts: ['cache:/x']}}", `runtime.docker.mounts[0]: "cache:/x" is not allowed`, List{Mounts: []string{"cache"}}},
		{"volume that is a directory", "runtime: {docker: {mounts: ['..:/x']}}", `runtime.docker.mounts[0]: "..:/x" is not allowed`, List{Mounts: []string{"/"}}},
		{"privileged", "runtime: {docker: {privileged: true}}", `runtime.docker.privileged: "true" is not allowed`, List{Docker: []string{"privileged=true"}}},
		{"entrypoint", "runtime: {docker: {entrypoint: [sh, -c]}}", `runtime.docker.entrypoint[0]: "sh" is not allowed`, List{Docker: []string{"entrypoint=*"}}},
		{"ipc", "runtime: {docker: {ipc: host}}", `runtime.docker.ipc: "host" is not allowed`, List{Docker: []string{"ipc=host"}}},
		{"device", "runtime: {docker: {devices: [/dev/sda]}}", `runtime.docker.devices[0]: "/dev/sda" is not allowed`, List{Docker: []string{"devices=/dev/sd?", "devices=/dev/sd*"}}},
		{"docker host", "runtime: {docker: {docker_host: 'tcp://10.0.0.1'}}", `runtime.docker.docker_host: "tcp://10.0.0.1" is not allowed`, List{Hosts: []string{"tcp://*"}}},
		{"cluster alone", "runtime: {kind: kubernetes}", "runtime.kind: pods are not allowed", List{Images: []string{"a"}, Kubernetes: []string{"namespace=b"}}},
		{"a Service", "runtime: {kind: existing, service: prod/llama, port: http}", `runtime.service: "prod/llama" is not allowed: an administrator adds kubernetes: ['service=prod/llama']`, List{Kubernetes: []string{"service=prod/*"}}},
		{"image of pods", "runtime: {kubernetes: {image: evil/image}}", `runtime.kubernetes.image: "evil/image" is not allowed`, List{Images: []string{"evil/*"}}},
		{"namespace", "runtime: {kubernetes: {namespace: kube-system}}", `runtime.kubernetes.namespace: "kube-system" is not allowed: an administrator adds kubernetes: ['namespace=kube-system']`, List{Kubernetes: []string{"namespace=kube-*"}}},
		{"kubeconfig", "runtime: {kubernetes: {kubeconfig: /root/.kube/config}}", `runtime.kubernetes.kubeconfig: "/root/.kube/config" is not allowed`, List{Kubernetes: []string{"kubeconfig=/root/.kube/config"}}},
		{"directory of a node", "runtime: {kubernetes: {mounts: ['/etc:/etc']}}", `runtime.kubernetes.mounts[0]: "/etc:/etc" is not allowed`, List{Kubernetes: []string{"mounts=/etc:*"}}},
		{"secret of a cluster", "runtime: {kubernetes: {secrets: {A: root/key}}}", `runtime.kubernetes.secrets.A: "root/key" is not allowed`, List{Kubernetes: []string{"secrets=root/*"}}},
		{"privileged pod", "runtime: {kubernetes: {pod: {spec: {containers: [{name: engine, securityContext: {privileged: true}}]}}}}", `runtime.kubernetes.pod.spec.containers[0].securityContext.privileged: "true" is not allowed`, List{Kubernetes: []string{"pod.spec.containers.*"}}},
		{"inherited variable", "runtime: {docker: {env: [AWS_SECRET]}}", `runtime.docker.env[0]: "AWS_SECRET" is not allowed`, List{Env: []string{"AWS_*"}}},
		{"variable", "engines: {vllm: {env: [LD_PRELOAD=/x.so]}}", `engines.vllm.env[0]: "LD_PRELOAD" is not allowed`, List{Env: []string{"LD_PRELOAD"}}},
		{"flag", "engines: {vllm: {flags: [--trust-remote-code]}}", `engines.vllm.flags[0]: "--trust-remote-code" is not allowed`, List{Flags: []string{"--trust-remote-code"}}},
		{"flag with a value", "engines: {vllm: {flags: [--load-format, dummy, --dtype=auto]}}", `engines.vllm.flags[0]: "--load-format=dummy" is not allowed`, List{Flags: []string{"--load-format=*", "--dtype=auto"}}},
		{"flag of what is predicted", "runtime: {kind: predicted}\nengines: {vllm: {flags: [--trust-remote-code], router: [--x]}}", "", List{}},
		{"flag of what is simulated", "runtime: {kind: simulated}\nengines: {vllm: {flags: [--questions=/etc/passwd]}}", `engines.vllm.flags[0]: "--questions=/etc/passwd" is not allowed`, List{Flags: []string{"--questions=*"}}},
		{"pool's flag", "engines: {vllm: {prefill: {flags: [--x]}}}", `engines.vllm.prefill.flags[0]: "--x" is not allowed`, List{Flags: []string{"--x"}}},
		{"router's flag", "engines: {vllm: {router: [--x, y]}}", `engines.vllm.router[0]: "--x=y" is not allowed`, List{Flags: []string{"--x=y"}}},
		{"configuration", "engines: {trtllm: {file: {plugin: {x: /y}}}}", `engines.trtllm.file.plugin: "plugin" is not allowed`, List{EngineConfig: []string{"plugin"}}},
		{"engine", "baseline: {label: a, engine: sglang}", "", List{}},
		{"program", "baseline: {label: a, engine: /bin/sh}", "baseline.engine: ", List{}},
		{"program of a space", "space: {engine: [/bin/sh]}", `space.engine[0]: "/bin/sh" is not allowed`, List{}},
		{"model's path", "baseline: {label: a, engine: vllm, model: /etc/passwd}", `baseline.model: "/etc/passwd" is not allowed`, List{Files: []string{"/etc"}}},
		{"model that is a directory here", "arms: [{label: a, engine: vllm, model: models/tiny}]", `arms[0].model: "models/tiny" is not allowed`, List{Files: []string{"/"}}},
		{"model of a space", "space: {model: [../x]}", `space.model[0]: "../x" is not allowed`, List{Files: []string{"/"}}},
		{"parameter", "baseline: {label: a, set: {speculative: '{\"model\": \"/x\"}'}}", `baseline.set.speculative: `, List{Files: []string{"/"}}},
		{"parameters of a pool", "engines: {vllm: {decode: {set: {quantization: /x}}}}", `engines.vllm.decode.set.quantization: "/x" is not allowed`, List{Files: []string{"/x"}}},
		{"model's configuration", "model_config: {a/b: /etc/passwd}", `model_config.a/b: "/etc/passwd" is not allowed`, List{Files: []string{"/etc/passwd"}}},
		{"dataset", "workloads: [{name: a, dataset_path: data/rows.jsonl}]", "", List{}},
		{"dataset by a link within", "workloads: [{name: a, dataset_path: data/in}]", "", List{}},
		{"dataset by a link out", "workloads: [{name: a, dataset_path: data/out/secret}]", `workloads[0].dataset_path: "data/out/secret" is not allowed`, List{Files: []string{"/"}}},
		{"dataset by a link out that is not there", "workloads: [{name: a, dataset_path: data/out/absent}]", `workloads[0].dataset_path: "data/out/absent" is not allowed`, List{Files: []string{"/"}}},
		{"dangling link", "workloads: [{name: a, dataset_path: data/nowhere}]", `workloads[0].dataset_path: "nowhere" is a link that leads nowhere`, List{}},
		{"dataset beside", "workloads: [{name: a, dataset_path: data/../models/tiny}]", `workloads[0].dataset_path: "data/../models/tiny" is not allowed`, List{Files: []string{"/"}}},
		{"dataset of the hub", "workloads: [{name: a, dataset_name: hf, dataset_path: org/name}]", "", List{}},
		{"subset", "workloads: [{name: a, hf_subset: ../../x}]", `workloads[0].hf_subset: "../../x" looks like a path`, List{}},
		{"tokenizer", "workloads: [{name: a, tokenizer: /etc/passwd}]", `workloads[0].tokenizer: "/etc/passwd" is not allowed`, List{Files: []string{"/etc"}}},
		{"tokenizer by name", "workloads: [{name: a, tokenizer: server}]", "", List{}},
		{"workload's name", "workloads: [{name: ../a}]", `workloads[0].name: "../a" looks like a path`, List{}},
		{"recipes", "priors: [/etc/passwd]", `priors[0]: "/etc/passwd" is not allowed`, List{Files: []string{"/etc"}}},
		{"earlier", "earlier: [/root]", `earlier[0]: "/root" is not allowed`, List{Files: []string{"/root"}}},
		{"questions", "accuracy: {questions: /etc/passwd}", `accuracy.questions: "/etc/passwd" is not allowed`, List{Files: []string{"/etc"}}},
		{"address", "runtime: {kind: existing, urls: ['http://169.254.169.254/']}", `runtime.urls[0]: "http://169.254.169.254/" is not allowed`, List{URLs: []string{"http://169.254.169.254"}}},
		{"address here", "runtime: {kind: existing, urls: ['http://127.0.0.1:8000', 'http://[::1]:1', 'http://localhost']}", "", List{}},
		{"address with a user", "runtime: {urls: ['http://127.0.0.1@evil']}", `runtime.urls[0]: "http://127.0.0.1@evil" is no base URL`, List{}},
		{"ssh", "runtime: {kind: ssh}", "runtime.kind: other machines are not allowed", List{Hosts: []string{"a"}}},
		{"host", "runtime: {kind: ssh, hosts: [{name: a, address: 10.0.0.1}]}", `runtime.kind: `, List{Hosts: []string{"10.0.0.*"}}},
		{"host as somebody", "runtime: {hosts: [{name: a, user: root}]}", `runtime.hosts[0]: "root@a" is not allowed`, List{Hosts: []string{"root@a"}}},
		{"option as a host", "runtime: {hosts: [{name: -oProxyCommand=x}]}", `runtime.hosts[0].name: "-oProxyCommand=x" has characters`, List{}},
		{"fleet", "runtime: {kind: fleet, machines: [{name: a}]}", "runtime.kind: other machines are not allowed", List{Hosts: []string{"a"}}},
		{"labels", "runtime: {kind: fleet, labels: {gpu: h100}}", "runtime.kind: ", List{Hosts: []string{"*"}}},
		{"machine", "runtime: {machines: [{name: a}]}", `runtime.machines[0]: "a" is not allowed`, List{Hosts: []string{"a"}}},
		{"simulated machine", "runtime: {kind: simulated, machines: [{name: a}]}", "", List{}},
		{"machine's engine", "runtime: {kind: docker, machines: [{name: a, docker_host: 'tcp://b', address: c}]}", "runtime.kind: ", List{Images: []string{"a"}, Hosts: []string{"tcp://b"}, URLs: []string{"http://c"}}},
		{"key", "runtime: {hosts: [{name: a, identity: /root/.ssh/id}]}", `runtime.hosts[0].identity: "/root/.ssh/id" is not allowed`, List{SSHFiles: []string{"/root/.ssh"}, Hosts: []string{"a"}}},
		{"configuration of ssh", "runtime: {ssh_config: /x}", `runtime.ssh_config: "/x" is not allowed`, List{SSHFiles: []string{"/x"}}},
		{"directory", "runtime: {dir: /x}", `runtime.dir: "/x" is not allowed`, List{Dirs: []string{"/x"}}},
		{"directory of data", "runtime: {dir: data}", `runtime.dir: "data" is not allowed`, List{Dirs: []string{"/"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := place(t, List{})
			f := kept(t, minimal+tt.text)
			if got := refusals(c.Study(f)); !strings.Contains("\n"+got, "\n"+tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if err := tt.open.Validate(); err != nil {
				t.Error(err)
			}
			opens := !reflect.DeepEqual(tt.open, List{}) || tt.want == ""
			c.List = tt.open
			if got := refusals(c.Study(f)); (got == "") != opens {
				t.Errorf("with the list that opens it: %s", got)
			}
		})
	}
}

// TestEngines: a list of engines leaves no other.
func TestEngines(t *testing.T) {
	c := place(t, List{Engines: []string{"vllm"}, Runtimes: []string{"predicted"}})
	got := refusals(c.Study(kept(t, minimal+"runtime: {kind: simulated}\nengines: {sglang: {version: 0.5.5}}\nbaseline: {label: a, engine: vllm}\narms: [{label: b, engine: trtllm}]\nspace: {engine: [llamacpp]}")))
	for _, want := range []string{`engines.sglang: "sglang" is not allowed`, `arms[0].engine: "trtllm" is not allowed`, `space.engine[0]: "llamacpp" is not allowed`, `runtime.kind: "simulated" is not allowed`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "baseline") {
		t.Error(got)
	}
}

// TestBench: each way out of a bench is closed.
func TestBench(t *testing.T) {
	for _, tt := range []struct {
		flag, value, want string
		open              List
	}{
		{"num-prompts", "10", "", List{}},
		{"base-url", "http://127.0.0.1:8000", "", List{}},
		{"kube-service", "prod/llama:http", `kube_service: "prod/llama:http" is not allowed`, List{Kubernetes: []string{"service=prod/llama:*"}}},
		{"kube-context", "lab", `kube_context: "lab" is not allowed`, List{Kubernetes: []string{"context=lab"}}},
		{"base-url", "http://127.0.0.1:8000,http://10.0.0.1", `base_url: "http://10.0.0.1" is not allowed`, List{URLs: []string{"http://10.0.0.1"}}},
		{"base-url", "file:///etc/passwd", `base_url: "file:///etc/passwd" is no base URL`, List{}},
		{"host", "localhost", "", List{}},
		{"host", "10.0.0.1", `host: "http://10.0.0.1" is not allowed`, List{URLs: []string{"http://10.*"}}},
		{"host", "a@b", `host: "a@b" is no host`, List{}},
		{"endpoint", "/v1/completions", "", List{}},
		{"endpoint", "@evil/", `endpoint: "@evil/" is no path of an API`, List{}},
		{"endpoint", "/@evil/", `endpoint: "/@evil/" is no path of an API`, List{}},
		{"model", "Qwen/Qwen3-8B", "", List{}},
		{"model", "/etc", `model: "/etc" is not allowed`, List{Files: []string{"/etc"}}},
		{"dataset-path", "/etc/passwd", `dataset_path: "/etc/passwd" is not allowed`, List{Files: []string{"/etc/passwd"}}},
		{"tokenizer", "../x", `tokenizer: "../x" is not allowed`, List{Files: []string{"/"}}},
		{"lora-modules", "a,b", "", List{}},
		{"nonce", "a\x00b", "nonce: has a byte that no command line can have", List{}},
		{"out", "/x", "out: is given by the queue", List{}},
		{"html", "/x", "html: is about a file", List{}},
		{"result-dir", "/x", "result_dir: is about a file", List{}},
		{"metrics-addr", ":1", "metrics_addr: would open a port", List{}},
		{"header", "A=b", "header: may hold a secret", List{}},
		{"from", "guidellm", "from: only prints a command", List{}},
		{"no-such-flag", "1", "no_such_flag: is no flag of perflab bench", List{}},
		{"out=/x --num-prompts", "1", "out=/x __num_prompts: is no flag of perflab bench", List{}},
	} {
		c := place(t, List{})
		flags := map[string][]string{tt.flag: {tt.value}}
		if got := refusals(c.Bench(flags)); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("--%s %s: got %s, want %s", tt.flag, tt.value, got, tt.want)
		}
		c.List = tt.open
		if got, opens := refusals(c.Bench(flags)), !reflect.DeepEqual(tt.open, List{}) || tt.want == ""; (got == "") != opens {
			t.Errorf("--%s %s with the list that opens it: %s", tt.flag, tt.value, got)
		}
	}
}

// TestParse: what a list says is read whole, or said to be wrong.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"# nothing yet\n": "",
		"files: [/data]\nengines: [vllm]\nmounts: [/data, cache]": "",
		"file: [/data]":                `"file" is no key of a list of what launches may use: it has engines, runtimes, flags, `,
		"files: /data":                 "this is no list of what launches may use, which has keys with lists, such as files: [/data]",
		"files: [data]":                `files[0]: "data" must begin with /`,
		"mounts: [../x]":               `mounts[0]: "../x" must begin with /`,
		"engines: [bash]":              "engines[0]: ",
		"files: [/data]\nenv: {a: b}":  "this is no list of what launches may use, which has keys with lists, such as files: [/data]: line 2 is something else",
		"env: ['']":                    "env[0]: is empty",
		"images: [a]\n---\nimages: []": "this is no list of what launches may use, which has keys with lists, such as files: [/data]",
	} {
		if _, err := Parse([]byte(text)); !strings.HasPrefix(refusals(err), want) || (err == nil) != (want == "") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent")); err == nil || !strings.HasPrefix(err.Error(), "read the list of what launches may use: ") {
		t.Errorf("of no file: %v", err)
	}
}

// TestExample: the example is right, and has every key; those that it has as remarks too.
func TestExample(t *testing.T) {
	l, err := Parse([]byte(strings.NewReplacer("# engines:", "engines:", "# runtimes:", "runtimes:").Replace(Example)))
	if err != nil {
		t.Fatal(err)
	}
	for v, i := reflect.ValueOf(l), 0; i < v.NumField(); i++ {
		if v.Field(i).Len() == 0 {
			t.Errorf("the example has no %s", v.Type().Field(i).Name)
		}
	}
	if l, err = Parse([]byte(Example)); err != nil || len(l.Engines)+len(l.Runtimes) > 0 {
		t.Errorf("as it is: %+v, %v", l, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("files: [/data]\nhooks: ['a b']\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Parse(b)
		if err == nil && l.Validate() != nil {
			t.Errorf("%+v is taken, and not valid", l)
		}
	})
}

// FuzzMatch: a pattern means what a regular expression says with .* for each star.
func FuzzMatch(f *testing.F) {
	f.Add("a*b", "axxb")
	f.Add("*a*a*", "aba")
	f.Add("a*a", "a")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(text) {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		if want := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(text); match(pattern, text) != want {
			t.Errorf("%q of %q: want %v", pattern, text, want)
		}
	})
}

// FuzzResolve: no path that is taken leads out of the root.
func FuzzResolve(f *testing.F) {
	f.Add("data/../../x")
	f.Add("/data/./in")
	dir := f.TempDir()
	c := Checker{Dir: dir, Roots: []string{dir}}
	f.Fuzz(func(t *testing.T, path string) {
		if file(c, "path", path) != nil {
			return
		}
		whole := path
		if !filepath.IsAbs(path) {
			whole = filepath.Join(dir, path)
		}
		if rel, err := filepath.Rel(dir, whole); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			t.Errorf("%q is allowed, and is %s from the root", path, rel)
		}
	})
}
