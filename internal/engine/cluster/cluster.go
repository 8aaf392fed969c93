// Package cluster is how commands of engines span machines, and how their devices are
// dealt out: the processes of a replica over several nodes by each engine's own way, the
// topology of a machine from what nvidia-smi prints, and which network the collective
// library took, from a log. It does no I/O.
//
//	places, left := cluster.Place(nodes, cmd.World(), topologies)
//	parts, err := cluster.Spread(cmd, places[0], "")   // the serving process last
//
// It is apart from package engine, which knows commands and configurations of one
// machine's view: no command, rule or default there depends on where processes stand.
package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
)

// Node is a machine that processes of a replica may run on.
type Node struct {
	Name      string   // as the runtime that starts processes on it knows it
	Addr      string   // at which the other nodes reach it, on the network that the collectives are to use
	Devices   []string // accelerators that the replica may use, as processes are shown them: an index on the machine, or a UUID
	Interface string   // network interface of Addr; "": the libraries choose
	HCA       string   // InfiniBand or RoCE adapters, as NCCL_IB_HCA takes them; "": all
}

// Part is one process of a replica that spans machines. {port} and {port:NAME} in
// Argv and Env stand for ports that whoever starts it chooses, the same in all parts.
type Part struct {
	Name    string // "ray-head", "rank-1"; "" for the front one
	Node    string
	Argv    []string
	Env     []string
	Devices []string      // accelerators that it may see
	Files   []engine.File // that Argv names as {file:NAME}
	Up      string        // a text of its output that says that the next part may start; "": at once
	Once    bool          // it ends by itself before the next is started
	Serves  string        // {port:NAME} on which it answers by itself: the next start at once, and the front part when it is ready
	Front   bool          // it serves, on {port}; the last of the parts
}

// Methods by which an engine spans machines.
const (
	Ray    = "ray"    // vLLM: a Ray cluster, then one serving process on its head
	Native = "native" // vLLM and SGLang: a process of the engine's own on each machine
	MPI    = "mpirun" // TensorRT-LLM: mpirun starts a rank for each device
	RPC    = "rpc"    // llama.cpp: rpc-server on the other machines
)

// MPILauncher is the program that makes one rank of an MPI job serve and the others
// work for it; what stands before it in a command starts the ranks.
const MPILauncher = "trtllm-llmapi-launch"

// Methods are those by which an engine can span machines, the default of most
// configurations first.
func Methods(engineName string) []string {
	switch engineName {
	case "vllm":
		return []string{Ray, Native}
	case "sglang":
		return []string{Native}
	case "trtllm":
		return []string{MPI}
	case "llamacpp":
		return []string{RPC}
	}
	return nil
}

// Spread is the processes of one replica of a command over several nodes, the
// serving one last. method is one of Methods, "" for what suits the command. On one
// node it is the command alone. What cannot be spread so is a *engine.Rejection.
func Spread(c engine.Command, nodes []Node, method string) ([]Part, error) {
	s := spreader{cmd: c, nodes: nodes, method: cmp.Or(method, suited(c))}
	if err := s.check(); err != nil {
		return nil, err
	}
	if c.Pools().Split() {
		return s.pools()
	}
	if len(nodes) == 1 {
		return []Part{s.front(s.argv(), c.Env)}, nil
	}
	if err := s.even(); err != nil {
		return nil, err
	}
	switch s.method {
	case Ray:
		return s.ray()
	case MPI:
		return s.mpi()
	case RPC:
		return s.rpc(s.argv()), nil
	case Native:
		if c.Engine == "sglang" {
			return s.sglang()
		}
	}
	if c.Count(engine.DP) > 1 {
		return s.dataParallel()
	}
	return s.ranks()
}

// suited is the method that suits a command when none is named: vLLM's copies for data
// parallelism have flags in every version, and from 0.18 Ray is no longer installed
// with vLLM.
func suited(c engine.Command) string {
	if c.Engine == "vllm" && (c.Count(engine.DP) > 1 || c.AtLeast("0.18")) {
		if backend := c.Flag("--distributed-executor-backend"); backend != Ray {
			return Native
		}
	}
	if methods := Methods(c.Engine); len(methods) > 0 {
		return methods[0]
	}
	return ""
}

// Remarks are what a reader of figures over these nodes should know: legal,
// and rarely wanted.
func Remarks(c engine.Command, nodes []Node, method string) []string {
	switch names := map[string]string{"vllm": "UCX_NET_DEVICES in the environment", "sglang": "--disaggregation-ib-device"}; {
	case len(nodes) < 2:
		return nil
	case c.Pools().Split():
		return []string{"KV caches go over the network that is chosen where they are sent, perhaps a slow one: " + names[c.Engine] + " names another."}
	}
	var out []string
	per := len(nodes[0].Devices)
	if tp := c.Count(engine.TP); tp > per && per > 0 && c.Engine != "llamacpp" {
		out = append(out, fmt.Sprintf("tp %d spans nodes of %d GPUs: every layer waits for the network between them; pp %d with tp %d sends far less over it.",
			tp, per, c.Count(engine.PP)*tp/per, per))
	}
	if cmp.Or(method, suited(c)) == Ray && c.AtLeast("0.18") {
		out = append(out, "vLLM "+c.Version+" is installed without Ray: every node needs it besides.")
	}
	for _, n := range nodes {
		if n.Interface == "" {
			out = append(out, fmt.Sprintf("No network interface is named for %s: the libraries choose one, perhaps a slow one; the log says which.", n.Name))
			break
		}
	}
	return out
}

// spreader makes the parts of one replica.
type spreader struct {
	cmd    engine.Command
	nodes  []Node
	method string
}

func reject(rule, format string, args ...any) *engine.Rejection {
	reason := fmt.Sprintf(format, args...)
	return &engine.Rejection{Rule: rule, Reason: reason, Log: "ValueError: " + reason}
}

// spreadFlags are what Spread sets itself, by engine.
func spreadFlags(engineName string) []string {
	switch engineName {
	case "vllm":
		return []string{"--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless", "--data-parallel-size-local",
			"--data-parallel-start-rank", "--data-parallel-rank", "--data-parallel-address", "--data-parallel-rpc-port"}
	case "sglang":
		return []string{"--nnodes", "--node-rank", "--dist-init-addr"}
	case "llamacpp":
		return []string{"--rpc"}
	}
	return nil
}

// check says what is wrong whatever the method.
func (s *spreader) check() error {
	e, err := engine.ByName(s.cmd.Engine)
	if err != nil {
		return err
	}
	if len(s.nodes) == 0 {
		return reject("nodes", "a replica needs at least 1 node, and none is given: name one")
	}
	if methods := Methods(e.Name); !slices.Contains(methods, s.method) {
		return reject("method", "%s does not span machines by %q: use %s", e.Title, s.method, strings.Join(methods, " or "))
	}
	seen := map[string]bool{}
	for i, n := range s.nodes {
		if n.Addr == "" && len(s.nodes) > 1 {
			return reject("address", "node %d (%s) has no address: say at which one the other nodes reach it", i, n.Name)
		}
		if seen[n.Name] {
			return reject("nodes", "node %q is listed twice for one replica", n.Name)
		}
		seen[n.Name] = true
	}
	if len(s.nodes) == 1 {
		return nil
	}
	for _, flag := range spreadFlags(e.Name) {
		if s.cmd.Has(flag) {
			return reject("spread-flag", "%s is set for each node here: leave it out of the command", flag)
		}
	}
	backend := s.cmd.Flag("--distributed-executor-backend")
	if want := map[string]string{Ray: "ray", Native: "mp"}[s.method]; e.Name == "vllm" && backend != "" && backend != want {
		return reject("method", "--distributed-executor-backend %s does not go with the method %s: leave it out", backend, s.method)
	}
	return nil
}

// even checks that the devices of the nodes are those of the world, as many on each.
func (s *spreader) even() error {
	if s.method == RPC {
		return nil // layers go over whatever devices there are
	}
	per, world := s.per(), s.cmd.World()
	for _, n := range s.nodes {
		if len(n.Devices) != per {
			return reject("nodes", "node %s gives %d GPUs and node %s %d: a replica takes as many of each", s.nodes[0].Name, per, n.Name, len(n.Devices))
		}
	}
	if got := per * len(s.nodes); got != world {
		return reject("world", "%s takes %d GPUs, and %d nodes x %d GPUs are %d: use sizes or nodes that agree", s.cmd.Sizes(), world, len(s.nodes), per, got)
	}
	return nil
}

// per is how many devices each node gives.
func (s *spreader) per() int { return len(s.nodes[0].Devices) }

// argv is the command listening where the other machines reach it too.
func (s *spreader) argv() []string {
	c := s.cmd
	if len(s.nodes) > 1 && s.cmd.Engine == "vllm" {
		c.Extra = without(c.Extra, "--distributed-executor-backend")
	}
	return c.ArgvPort(cmp.Or(c.Host, "0.0.0.0"), "{port}")
}

// without removes a flag and its value.
func without(args []string, flag string) []string {
	i := slices.IndexFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
	if i < 0 {
		return args
	}
	n := 1
	if args[i] == flag {
		n = 2
	}
	return slices.Delete(slices.Clone(args), i, min(i+n, len(args)))
}

func (s *spreader) front(argv, env []string) Part {
	return Part{Node: s.nodes[0].Name, Argv: argv, Env: env, Devices: s.nodes[0].Devices, Files: s.cmd.Files(), Front: true}
}

// env is the environment of a part on a node: what the collective libraries need to
// take the right network and to say which they took, then the command's own, which
// wins.
func (s *spreader) env(n Node, more ...string) []string {
	var all []string
	if n.Interface != "" {
		all = append(all, "NCCL_SOCKET_IFNAME="+n.Interface, "GLOO_SOCKET_IFNAME="+n.Interface)
	}
	if n.HCA != "" {
		all = append(all, "NCCL_IB_HCA="+n.HCA)
	}
	all = slices.Concat([]string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET"}, all, more)
	return override(all, s.cmd.Env)
}

// override is env with the entries of own in place of those of the same name.
func override(env, own []string) []string {
	out := slices.Clone(env)
	for _, kv := range own {
		key, _, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(e string) bool { return strings.HasPrefix(e, key+"=") })
	}
	return append(out, own...)
}

// rayUp is what ray start prints when its node has joined, on head and workers.
const rayUp = "Ray runtime started."

// ray is a Ray cluster of exactly this replica's devices, and vLLM on its head.
func (s *spreader) ray() ([]Part, error) {
	argv := append(s.argv(), "--distributed-executor-backend", "ray")
	if dp := s.cmd.Count(engine.DP); dp > 1 {
		local, err := s.copies(dp)
		if err != nil {
			return nil, err
		}
		argv = append(argv, "--data-parallel-size-local", strconv.Itoa(local), "--data-parallel-address", s.nodes[0].Addr)
		if s.cmd.Flag("--data-parallel-backend") == "" {
			argv = append(argv, "--data-parallel-backend", "ray")
		}
	}
	var parts []Part
	for i, n := range s.nodes {
		p := Part{Name: fmt.Sprintf("ray-worker-%d", i), Node: n.Name, Env: s.env(n, "VLLM_HOST_IP="+n.Addr), Devices: n.Devices, Up: rayUp}
		p.Argv = []string{"ray", "start", "--address=" + s.nodes[0].Addr + ":{port:ray}", "--node-ip-address=" + n.Addr}
		if i == 0 {
			p.Name = "ray-head"
			p.Argv = []string{"ray", "start", "--head", "--node-ip-address=" + n.Addr, "--port={port:ray}", "--include-dashboard=false", "--disable-usage-stats"}
		}
		p.Argv = append(p.Argv, "--num-gpus="+strconv.Itoa(s.per()), "--block")
		parts = append(parts, p)
	}
	head := s.nodes[0]
	front := s.front(argv, s.env(head, "VLLM_HOST_IP="+head.Addr, "RAY_ADDRESS="+head.Addr+":{port:ray}"))
	return append(parts, front), nil
}

// copies is how many data-parallel copies stand on each node, whole.
func (s *spreader) copies(dp int) (int, error) {
	size := s.cmd.World() / dp
	if size > s.per() {
		return 0, reject("dp-nodes", "a data-parallel copy of %d GPUs does not fit on a node of %d: use replicas, or a smaller tp x pp", size, s.per())
	}
	if dp%len(s.nodes) != 0 {
		return 0, reject("dp-nodes", "dp %d is not divisible by %d nodes: use a dp that is", dp, len(s.nodes))
	}
	return dp / len(s.nodes), nil
}

// dataParallel is vLLM's copies, some on each node, behind the front end of the first.
func (s *spreader) dataParallel() ([]Part, error) {
	local, err := s.copies(s.cmd.Count(engine.DP))
	if err != nil {
		return nil, err
	}
	return s.perNode(func(i int) []string {
		argv := append(s.argv(), "--data-parallel-size-local", strconv.Itoa(local),
			"--data-parallel-address", s.nodes[0].Addr, "--data-parallel-rpc-port", "{port:dp}")
		if i > 0 {
			argv = append(argv, "--data-parallel-start-rank", strconv.Itoa(i*local), "--headless")
		}
		return argv
	}), nil
}

// ranks is vLLM over several nodes without Ray.
func (s *spreader) ranks() ([]Part, error) {
	if c := s.cmd; c.Version != "" && !c.AtLeast("0.12") {
		return nil, reject("version", "vLLM %s has no --nnodes, which came with 0.12: use the method %s", c.Version, Ray)
	}
	return s.perNode(func(i int) []string {
		argv := append(s.argv(), "--distributed-executor-backend", "mp", "--nnodes", strconv.Itoa(len(s.nodes)), "--node-rank", strconv.Itoa(i),
			"--master-addr", s.nodes[0].Addr, "--master-port", "{port:master}")
		if i > 0 {
			argv = append(argv, "--headless")
		}
		return argv
	}), nil
}

func (s *spreader) sglang() ([]Part, error) {
	if s.cmd.Count(engine.DP) > 1 && !s.cmd.Has("--enable-dp-attention") {
		return nil, reject("dp-nodes", "SGLang's dp %d stays on one node unless --enable-dp-attention is given: use replicas", s.cmd.Count(engine.DP))
	}
	return s.perNode(func(i int) []string {
		return append(s.argv(), "--nnodes", strconv.Itoa(len(s.nodes)), "--node-rank", strconv.Itoa(i),
			"--dist-init-addr", s.nodes[0].Addr+":{port:dist}")
	}), nil
}

// perNode is a process of the engine on each node: the others first, for none says
// that it is up before the first has joined.
func (s *spreader) perNode(argv func(i int) []string) []Part {
	var parts []Part
	for i, n := range s.nodes {
		var more []string
		if s.cmd.Engine == "vllm" {
			more = append(more, "VLLM_HOST_IP="+n.Addr)
		}
		parts = append(parts, Part{Name: fmt.Sprintf("rank-%d", i), Node: n.Name, Argv: argv(i), Env: s.env(n, more...), Devices: n.Devices})
	}
	parts[0].Name, parts[0].Front = "", true
	return append(parts[1:], parts[0])
}

// mpi is one mpirun that starts a rank for each device. What it passes on is the
// same on every node, so interfaces are a list and devices must be of the same indices.
func (s *spreader) mpi() ([]Part, error) {
	head := s.nodes[0]
	var hosts, interfaces []string
	for _, n := range s.nodes {
		if !slices.Equal(n.Devices, head.Devices) {
			return nil, reject("devices", "mpirun gives every node the same devices: %s has %v and %s %v", head.Name, head.Devices, n.Name, n.Devices)
		}
		if n.HCA != head.HCA {
			return nil, reject("devices", "mpirun gives every node the same NCCL_IB_HCA: %s has %q and %s %q", head.Name, head.HCA, n.Name, n.HCA)
		}
		hosts = append(hosts, fmt.Sprintf("%s:%d", n.Addr, s.per()))
		if n.Interface != "" && !slices.Contains(interfaces, n.Interface) {
			interfaces = append(interfaces, n.Interface)
		}
	}
	head.Interface = strings.Join(interfaces, ",")
	env := s.env(head)
	argv := []string{"mpirun", "-n", strconv.Itoa(s.cmd.World()), "--host", strings.Join(hosts, ","), "--allow-run-as-root", "--bind-to", "none"}
	if head.Interface != "" {
		argv = append(argv, "--mca", "btl_tcp_if_include", head.Interface)
	}
	argv = append(argv, "-x", "CUDA_VISIBLE_DEVICES="+strings.Join(head.Devices, ","))
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		argv = append(argv, "-x", key) // by name: a secret's value stays out of the command line
	}
	return []Part{s.front(slices.Concat(argv, []string{MPILauncher}, s.argv()), env)}, nil
}

// rpcUp is what llama.cpp's rpc-server prints before it listens.
const rpcUp = "Starting RPC server"

// rpc is llama.cpp's server on the first node with the devices of the others.
func (s *spreader) rpc(argv []string) []Part {
	var parts []Part
	var servers []string
	for i, n := range s.nodes[1:] {
		parts = append(parts, Part{
			Name: fmt.Sprintf("rpc-%d", i+1), Node: n.Name, Devices: n.Devices, Env: s.cmd.Env, Up: rpcUp,
			Argv: []string{"stdbuf", "-oL", "rpc-server", "--host", n.Addr, "--port", "{port:rpc}"}, // else a file gets its lines with the first client
		})
		servers = append(servers, n.Addr+":{port:rpc}")
	}
	return append(parts, s.front(append(argv, "--rpc", strings.Join(servers, ",")), s.cmd.Env))
}
