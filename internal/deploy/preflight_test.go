package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
)

// nodeTable answers for nodes from a table: node -> first words of the command -> output.
type nodeTable map[string]map[string]string

func (n nodeTable) Nodes() []string { return nil }

func (n nodeTable) Command(_ context.Context, node string, argv []string, stdout io.Writer) error {
	answers, ok := n[node]
	if !ok {
		return &InfraError{Op: "reach " + node, Err: errors.New("connection timed out")}
	}
	for words, answer := range answers {
		if !strings.HasPrefix(strings.Join(argv, " "), words) {
			continue
		}
		if text, failed := strings.CutPrefix(answer, "FAIL "); failed {
			return &ExitError{Argv: argv, Code: 1, Stderr: text}
		}
		_, err := io.WriteString(stdout, answer)
		return err
	}
	return &InfraError{Op: "run " + argv[0] + " on " + node, Err: exec.ErrNotFound}
}

const (
	lsModel = "total 9\n-rw-r--r-- 1 0 0 120 Jan  1 10:00 ./config.json\n-rw-r--r-- 1 0 0 4000000000 Jan  1  2025 ./model 1.safetensors\n"
	socket  = "  sl  local_address rem_address   st\n   0: 00000000:1F90 00000000:0000 0A 0 0\n   1: 0100007F:1770 0100007F:9C40 01 0 0\n"
	address = "2: enp1s0    inet 10.20.0.4/24 brd 10.20.0.255 scope global enp1s0\n2: enp1s0    inet6 fe80::1/64 scope link\n"
)

// sound is a node on which everything holds.
func sound(addr string) map[string]string {
	return map[string]string{
		"vllm --version": "INFO 01-01 starting\n0.17.1\n", "sh -c case": lsModel, "sh -c cat": socket,
		"ip -o addr": strings.ReplaceAll(address, "10.20.0.4", addr),
	}
}

func twoNodes() Preflight {
	return Preflight{
		Name: "trial 3", Version: []string{"vllm", "--version"}, Model: "/models/m", Ports: []int{8000, 6379},
		Nodes: []cluster.Node{
			{Name: "a", Addr: "10.20.0.4", Interface: "enp1s0", Devices: []string{"0", "1"}},
			{Name: "b", Addr: "10.20.0.5", Interface: "enp1s0", Devices: []string{"0", "1"}},
		},
	}
}

func TestPreflight(t *testing.T) {
	findings, err := twoNodes().Run(t.Context(), nodeTable{"a": sound("10.20.0.4"), "b": sound("10.20.0.5")})
	if err != nil || len(findings) != 8 {
		t.Errorf("%d findings, %v", len(findings), err)
	}
	for _, f := range findings {
		if !f.OK || f.Text == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestPreflightProblems(t *testing.T) {
	for _, c := range []struct{ words, answer, want string }{
		{"vllm --version", "0.16.0\n", "a has version 0.17.1 of the engine and b version 0.16.0: install the same on both"},
		{"vllm --version", "", "vllm --version prints no version on b"},
		{"vllm --version", "FAIL ModuleNotFoundError: No module named 'vllm'", `the engine's version on b cannot be read: vllm --version ended with status 1: "ModuleNotFoundError: No module named 'vllm'"`},
		{"sh -c case", strings.Replace(lsModel, " 120 ", " 121 ", 1), "the model /models/m differs between a and b: config.json"},
		{"sh -c case", "-rw-r--r-- 1 0 0 120 Jan  1 10:00 ./config.json\n", "the model /models/m differs between a and b: model 1.safetensors"},
		{"sh -c case", "", "the model /models/m has no files on b"},
		{"sh -c cat", strings.Replace(socket, "1F90", "1F40", 1), "port 8000 of b is in use: end what listens there, or choose another"},
		{"ip -o addr", strings.ReplaceAll(address, "10.20.0.4", "10.20.0.6"), "the interface enp1s0 of b has not the address 10.20.0.5 but 10.20.0.6, fe80::1"},
		{"ip -o addr", `FAIL Device "enp1s0" does not exist.`, "b has no network interface enp1s0"},
	} {
		b := sound("10.20.0.5")
		b[c.words] = c.answer
		findings, err := twoNodes().Run(t.Context(), nodeTable{"a": sound("10.20.0.4"), "b": b})
		infra, ok := errors.AsType[*InfraError](err)
		if !ok || infra.Err.Error() != c.want || infra.Op != "check the nodes of trial 3" || infra.Hint() == "" {
			t.Errorf("%s: %v\nwant %s", c.words, err, c.want)
		}
		bad := 0
		for _, f := range findings {
			if !f.OK {
				bad++
				if f.Node != "b" {
					t.Errorf("%s: found on %s", c.words, f.Node)
				}
			}
		}
		if bad != 1 {
			t.Errorf("%s: %d findings are not OK", c.words, bad)
		}
	}
}

// TestPreflightLacking: what cannot be looked at passes nothing, and each is named.
func TestPreflightLacking(t *testing.T) {
	b := sound("10.20.0.5")
	delete(b, "ip -o addr")
	_, err := twoNodes().Run(t.Context(), nodeTable{"a": sound("10.20.0.4"), "b": b})
	if err == nil || !strings.Contains(err.Error(), "install iproute2 there, or name no interface") {
		t.Errorf("without ip: %v", err)
	}
	findings, err := twoNodes().Run(t.Context(), nodeTable{"a": sound("10.20.0.4")})
	if err == nil || strings.Count(err.Error(), "connection timed out") != 4 {
		t.Errorf("a node that cannot be reached: %v", err)
	}
	if len(findings) != 8 {
		t.Errorf("%d findings", len(findings))
	}
	if _, err := (Preflight{Nodes: twoNodes().Nodes[:1], Model: "Qwen/Qwen3-32B"}).Run(t.Context(), nodeTable{"a": sound("10.20.0.4")}); err != nil {
		t.Errorf("a repository's name is no path: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := twoNodes().Run(ctx, nodeTable{}); !errors.Is(err, stopped) {
		t.Errorf("cancelled: %v", err)
	}
}

// here runs the commands on this machine.
type here struct{}

func (here) Nodes() []string { return []string{""} }

func (here) Command(ctx context.Context, _ string, argv []string, stdout io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout = stdout
	return cmd.Run()
}

// TestPreflightHere tries the commands themselves: files with odd names under a link,
// a hidden download cache, a port that is open.
func TestPreflightHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the table of sockets is Linux's")
	}
	dir := t.TempDir()
	for name, size := range map[string]int{"blobs/weights  two": 7, "model/config.json": 3, "model/.cache/lock": 1} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../blobs/weights  two", filepath.Join(dir, "model", "weights  two")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	p := Preflight{Nodes: make([]cluster.Node, 1), Model: filepath.Join(dir, "model"), Ports: []int{port}}
	_, err = p.Run(t.Context(), here{})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d of this machine is in use", port)) {
		t.Errorf("%v", err)
	}
	f := p.look(t.Context(), here{}, p.Nodes[0])
	if len(f.model) != 2 || f.model["weights  two"] != "7" || f.model["config.json"] != "3" {
		t.Errorf("files %v", f.model)
	}
	p.Model = filepath.Join(dir, "model", "config.json")
	if f := p.look(t.Context(), here{}, p.Nodes[0]); f.model[p.Model] != "3" {
		t.Errorf("a file: %v", f.model)
	}
}

func TestNetworkFinding(t *testing.T) {
	slow := "a:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\na:1:1 [0] NCCL INFO Using network Socket\n"
	if f, ok := Network("a", slow); !ok || f.OK || f.Check != CheckNetwork || !strings.HasPrefix(f.Text, "NCCL runs over plain sockets on a (plain TCP sockets on eth0)") {
		t.Errorf("%+v %v", f, ok)
	}
	if f, ok := Network("a", "a:1:1 [0] NCCL INFO Using network IB\n"); !ok || !f.OK || f.Text != "NCCL runs over InfiniBand on a" {
		t.Errorf("%+v %v", f, ok)
	}
	if _, ok := Network("a", "loading\n"); ok {
		t.Error("a log that does not tell gives a finding")
	}
}

func TestSpreadParts(t *testing.T) {
	c, err := engine.Parse([]string{"vllm", "serve", "m", "-tp", "2"})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := cluster.Spread(c, []cluster.Node{{Name: "a", Addr: "10.0.0.1", Devices: []string{"3"}}, {Name: "b", Addr: "10.0.0.2", Devices: []string{"0"}}}, cluster.Ray)
	if err != nil {
		t.Fatal(err)
	}
	r := Spread(parts)
	if len(r.Peers) != 2 || r.Argv[0] != "vllm" || r.Node != "a" || r.Devices[0] != "3" || r.Peers[1].Node != "b" || r.Peers[0].Up == "" || r.Peers[0].Name != "ray-head" {
		t.Errorf("%+v", r)
	}
	if err := (Spec{Dir: "d", Replicas: []Replica{r}}).Validate(); err != nil {
		t.Error(err)
	}
}
