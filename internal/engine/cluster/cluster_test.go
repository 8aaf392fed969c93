package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
	"perflab/internal/engine/shellwords"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// nodesOf are nodes with so many devices each, reached by addresses of one network.
func nodesOf(n, devices int) []Node {
	var out []Node
	for i := range n {
		node := Node{Name: string(rune('a' + i)), Addr: fmt.Sprintf("10.20.0.%d", 4+i), Interface: "enp1s0", HCA: "mlx5_0,mlx5_1"}
		node.Devices = Devices(devices)
		out = append(out, node)
	}
	return out
}

func parsed(t *testing.T, version, line string) engine.Command {
	t.Helper()
	words, err := shellwords.Split(line)
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	c.Version = version
	return c
}

// spread prints parts as a reader checks them.
func spread(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		name := p.Name
		if p.Front {
			name += "(front)"
		}
		fmt.Fprintf(&b, "%s on %s, devices %v", name, p.Node, p.Devices)
		if p.Up != "" {
			fmt.Fprintf(&b, ", up at %q", p.Up)
		}
		if p.Serves != "" {
			fmt.Fprintf(&b, ", serves on {port:%s}", p.Serves)
		}
		fmt.Fprintf(&b, "\n  %s\n  %s\n", strings.Join(p.Env, " "), strings.Join(p.Argv, " "))
	}
	return b.String()
}

// TestSpread holds the processes of every engine and method against files that were
// read in review; -update writes them.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name, version, line, method string
		nodes                       []Node
	}{
		{"vllm-ray-tp", "0.11", "vllm serve Qwen/Qwen3-VL-235B-A22B-Instruct-FP8 --trust-remote-code -tp 4 --distributed-executor-backend ray", "", nodesOf(4, 1)},
		{"vllm-ray-pp", "", "vllm serve m -tp 8 -pp 2", "", nodesOf(2, 8)},
		{"vllm-ray-dp", "0.17", "vllm serve m -tp 4 -dp 4 --enable-expert-parallel", Ray, nodesOf(2, 8)},
		{"vllm-native-pp", "0.18", "HF_TOKEN=secret NCCL_DEBUG=WARN vllm serve m -tp 8 -pp 2 --host 10.0.0.9", "", nodesOf(2, 8)},
		{"vllm-native-dp", "0.11", "vllm serve m -dp 16 --enable-expert-parallel", "", nodesOf(2, 8)},
		{"vllm-one-node", "", "vllm serve m -tp 8", "", nodesOf(1, 8)},
		{"sglang", "", "python3 -m sglang.launch_server --model-path m --tp-size 16", "", nodesOf(2, 8)},
		{"sglang-dp-attention", "", "python3 -m sglang.launch_server --model-path m --tp-size 16 --dp-size 16 --enable-dp-attention", Native, nodesOf(2, 8)},
		{"trtllm", "", "TRTLLM_ENABLE_PDL=1 trtllm-serve m --tp_size 16 --ep_size 16", "", nodesOf(2, 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts, err := Spread(parsed(t, c.version, c.line), c.nodes, c.method)
			if err != nil {
				t.Fatal(err)
			}
			if !parts[len(parts)-1].Front {
				t.Error("the last part is not the front one")
			}
			golden(t, c.name, spread(parts))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "spread", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got\n%s", path, d)
	}
}

// TestSpreadRPC tries llama.cpp's by its command line, which needs no catalogue.
func TestSpreadRPC(t *testing.T) {
	s := spreader{cmd: engine.Command{Engine: "llamacpp", Model: "m.gguf"}, nodes: nodesOf(3, 1), method: RPC}
	golden(t, "llamacpp", spread(s.rpc([]string{"llama-server", "-m", "m.gguf", "--host", "0.0.0.0", "--port", "{port}"})))
}

func TestSpreadRejects(t *testing.T) {
	uneven := nodesOf(2, 8)
	uneven[1].Devices = uneven[1].Devices[:4]
	homeless := nodesOf(2, 8)
	homeless[1].Addr = ""
	moved := nodesOf(2, 4)
	moved[1].Devices = []string{"4", "5", "6", "7"}
	twice := nodesOf(2, 8)
	twice[1].Name = "a"
	for _, c := range []struct {
		version, line, method string
		nodes                 []Node
		want                  string
	}{
		{"", "vllm serve m -tp 8", "", nodesOf(2, 8), "tp 8 takes 8 GPUs, and 2 nodes x 8 GPUs are 16: use sizes or nodes that agree"},
		{"", "vllm serve m -tp 16", "", uneven, "node a gives 8 GPUs and node b 4: a replica takes as many of each"},
		{"", "vllm serve m -tp 16", "", homeless, "node 1 (b) has no address: say at which one the other nodes reach it"},
		{"", "vllm serve m -tp 16", "", twice, `node "a" is listed twice for one replica`},
		{"", "vllm serve m -tp 16", "", nil, "a replica needs at least 1 node, and none is given: name one"},
		{"", "vllm serve m -tp 16", MPI, nodesOf(2, 8), `vLLM does not span machines by "mpirun": use ray or native`},
		{"", "vllm serve m -tp 16 --nnodes 2", "", nodesOf(2, 8), "--nnodes is set for each node here: leave it out of the command"},
		{"", "vllm serve m -tp 16 --distributed-executor-backend mp", Ray, nodesOf(2, 8), "--distributed-executor-backend mp does not go with the method ray: leave it out"},
		{"0.11.2", "vllm serve m -tp 16", Native, nodesOf(2, 8), "vLLM 0.11.2 has no --nnodes, which came with 0.12: use the method ray"},
		{"", "vllm serve m -tp 16 -dp 2", "", nodesOf(4, 8), "a data-parallel copy of 16 GPUs does not fit on a node of 8: use replicas, or a smaller tp x pp"},
		{"", "vllm serve m -tp 8 -dp 3", "", nodesOf(2, 12), "dp 3 is not divisible by 2 nodes: use a dp that is"},
		{"", "python3 -m sglang.launch_server --model-path m --tp-size 8 --dp-size 2", "", nodesOf(2, 8), "SGLang's dp 2 stays on one node unless --enable-dp-attention is given: use replicas"},
		{"", "trtllm-serve m --tp_size 8", "", moved, "mpirun gives every node the same devices: a has [0 1 2 3] and b [4 5 6 7]"},
	} {
		_, err := Spread(parsed(t, c.version, c.line), c.nodes, c.method)
		r, ok := errors.AsType[*engine.Rejection](err)
		if !ok || r.Reason != c.want {
			t.Errorf("%s over %d nodes: %v, want %q", c.line, len(c.nodes), err, c.want)
		}
	}
}

func TestSpreadRemarks(t *testing.T) {
	plain := nodesOf(2, 8)
	plain[0].Interface = ""
	for _, c := range []struct {
		version, line, method string
		nodes                 []Node
		want                  string
	}{
		{"", "vllm serve m -tp 8 -pp 2", "", nodesOf(2, 8), ""},
		{"", "vllm serve m -tp 8", "", nodesOf(1, 8), ""},
		{"", "vllm serve m -tp 16", "", nodesOf(2, 8), "tp 16 spans nodes of 8 GPUs: every layer waits for the network between them; pp 2 with tp 8 sends far less over it."},
		{"0.20", "vllm serve m -tp 8 -pp 2", Ray, nodesOf(2, 8), "vLLM 0.20 is installed without Ray: every node needs it besides."},
		{"", "vllm serve m -tp 8 -pp 2", "", plain, "No network interface is named for a: the libraries choose one, perhaps a slow one; the log says which."},
	} {
		if got := strings.Join(Remarks(parsed(t, c.version, c.line), c.nodes, c.method), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestNetwork(t *testing.T) {
	for _, c := range []struct {
		name, log, text string
		slow, ok        bool
	}{
		{"nothing", "INFO: Application startup complete.\n", "", false, false},
		{"bootstrap only", "n1:1:1 [0] NCCL INFO Bootstrap : Using ens3:172.31.12.21<0>\n", "", false, false},
		{"socket", "n1:1:1 [0] NCCL INFO NET/IB : No device found.\nn1:1:1 [0] NCCL INFO NET/Socket : Using [0]ens3:172.31.12.21<0> [1]docker0:172.17.0.1<0>\nn1:1:1 [0] NCCL INFO Using network Socket\n",
			"plain TCP sockets on ens3, docker0", true, true},
		{"infiniband", "\x1b[36m(RayWorkerWrapper pid=9)\x1b[0m n1:9:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>\nn1:9:9 [0] NCCL INFO Using network IB\nn1:9:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n",
			"InfiniBand on mlx5_0, mlx5_1, GPUDirect RDMA", false, true},
		{"roce", "n1:1:1 [0] NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; OOB enp1s0f1np1:169.254.1.1<0>\nn1:1:1 [0] NCCL INFO Initialized NET plugin IB\nn1:1:1 [0] NCCL INFO Assigned NET plugin IB to comm\nn1:1:1 [0] NCCL INFO Using network IB\n",
			"RoCE on rocep1s0f1, roceP2p1s0f1", false, true},
		{"plugin", "n1:1:1 [0] NCCL INFO Using network AWS Libfabric\nn1:1:1 [0] NCCL INFO Channel 00 : 7[901d0] -> 8[101c0] [receive] via NET/AWS Libfabric/0/GDRDMA\n", "AWS Libfabric, GPUDirect RDMA", false, true},
		{"adapters found, sockets used", "n1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\nn1:1:1 [0] NCCL INFO Channel 00/0 : 15[7] -> 0[0] [receive] via NET/Socket/0\n",
			"plain TCP sockets", true, true},
	} {
		if text, slow, ok := Network(c.log); text != c.text || slow != c.slow || ok != c.ok {
			t.Errorf("%s: %q %v %v, want %q %v %v", c.name, text, slow, ok, c.text, c.slow, c.ok)
		}
	}
}
