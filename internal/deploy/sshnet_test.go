package deploy_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/engine/cluster"
	"perflab/internal/test/deploytest"
)

// rankEnv makes the test binary a further rank of an engine: it connects to the
// address that the variable has, says so, and stays.
const rankEnv = "PERFLAB_TEST_RANK"

func rankMain() {
	address := os.Getenv(rankEnv)
	if address == "" {
		return
	}
	time.AfterFunc(time.Minute, func() { os.Exit(3) })
	if path := os.Getenv(rankEnv + "_PID"); path != "" {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint(os.Getpid())), nil, 0o644); err != nil {
			panic(err)
		}
	}
	if port, ok := strings.CutPrefix(address, "listen:"); ok {
		l, err := net.Listen("tcp", "0.0.0.0:"+port)
		if err != nil {
			panic(err)
		}
		fmt.Println("listening at", l.Addr())
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		fmt.Println("joined by", c.RemoteAddr())
		select {}
	}
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			fmt.Println("joined", c.RemoteAddr())
			select {}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// twoHosts are network namespaces, each with a server of its own, linked to this
// one and to each other.
type twoHosts struct {
	hosts   []deploy.HostEntry
	servers []*sshServer
	between []string // their addresses on the link between them
	inside  []string // their interfaces on it
	links   []string // interfaces of this namespace that lead to them
}

func newTwoHosts(t *testing.T) *twoHosts {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip(err)
	}
	deploytest.NeedSSHD(t)
	id := os.Getpid() % 10000
	name := func(kind string, i int) string { return fmt.Sprintf("pl%d%s%d", id, kind, i) }
	if out, err := exec.Command("ip", "netns", "add", name("n", 0)).CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made: %s", out)
	}
	h := &twoHosts{}
	t.Cleanup(func() {
		for i := range 2 {
			_ = exec.Command("ip", "netns", "del", name("n", i)).Run() // with its interfaces
			_ = exec.Command("ip", "link", "del", name("h", i)).Run()
		}
	})
	output(t, "ip", "netns", "add", name("n", 1))
	output(t, "ip", "link", "add", name("x", 0), "netns", name("n", 0), "type", "veth", "peer", "name", name("x", 1), "netns", name("n", 1))
	net := func(link, end int) string { return fmt.Sprintf("10.%d.%d.%d", 100+id%100, 4*(id/100%60)+link, end) }
	for i := range 2 {
		output(t, "ip", "link", "add", name("h", i), "type", "veth", "peer", "name", "mgmt", "netns", name("n", i))
		output(t, "ip", "addr", "add", net(i, 1)+"/24", "dev", name("h", i))
		output(t, "ip", "link", "set", name("h", i), "up")
		inside := func(arg ...string) { output(t, "ip", append([]string{"-n", name("n", i)}, arg...)...) }
		inside("addr", "add", net(i, 2)+"/24", "dev", "mgmt")
		inside("addr", "add", net(2, i+1)+"/24", "dev", name("x", i))
		for _, dev := range []string{"lo", "mgmt", name("x", i)} {
			inside("link", "set", dev, "up")
		}
		s := startSSHD(t, net(i, 2), "ip", "netns", "exec", name("n", i))
		h.servers = append(h.servers, s)
		h.between = append(h.between, net(2, i+1))
		h.inside = append(h.inside, name("x", i))
		h.links = append(h.links, name("h", i))
		h.hosts = append(h.hosts, deploy.HostEntry{
			Name: fmt.Sprintf("host-%d", i), Address: net(i, 2), Port: s.port, Identity: s.dir + "/key",
		})
	}
	return h
}

func (h *twoHosts) runtime(t *testing.T) *deploy.SSH {
	t.Helper()
	config, known := filepath.Join(t.TempDir(), "config"), ""
	for _, s := range h.servers {
		known += " " + s.dir + "/known_hosts"
	}
	writeFile(t, config, "UserKnownHostsFile"+known+"\n")
	r := &deploy.SSH{
		Hosts: h.hosts, Config: config,
		Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond, Silence: 3 * time.Second,
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// spec is a replica whose first rank is on the second host, and joins the other: a
// peer on the first, where the front process is too.
func (h *twoHosts) spec(t *testing.T) deploy.Spec {
	s := deploytest.Spec(t, deploytest.Ready)
	rank := func(node, address, up string) deploy.Peer {
		return deploy.Peer{Name: "rank-" + node, Up: up, Member: deploy.Member{
			Node: node, Argv: []string{os.Args[0]},
			Env: []string{rankEnv + "=" + address, rankEnv + "_PID=" + filepath.Join(s.Dir, "pids"), "GORACE=atexit_sleep_ms=0"},
		}}
	}
	s.Replicas[0].Node = "host-0"
	s.Replicas[0].Peers = []deploy.Peer{
		rank("host-0", "listen:{port:dist}", "listening at"),
		rank("host-1", h.between[0]+":{port:dist}", "joined"),
	}
	return s
}

// preflight looks at the hosts themselves: interfaces and addresses that are there and that
// are not, and a port that sshd listens on.
func (h *twoHosts) preflight(t *testing.T, r *deploy.SSH) {
	t.Helper()
	var p deploy.Preflight
	for i, host := range h.hosts {
		p.Nodes = append(p.Nodes, cluster.Node{Name: host.Name, Addr: h.between[i], Interface: h.inside[i]})
	}
	findings, err := p.Run(t.Context(), r)
	if err != nil || len(findings) != 2 {
		t.Errorf("findings %+v, %v", findings, err)
	}
	p.Ports = []int{h.servers[1].port}
	p.Nodes[0].Interface, p.Nodes[1].Addr = "ib7", h.between[0]
	_, err = p.Run(t.Context(), r)
	infra(t, err, "host-0 has no network interface ib7", fmt.Sprintf("port %d of host-1 is in use", p.Ports[0]),
		fmt.Sprintf("the interface %s of host-1 has not the address %s but %s", h.inside[1], h.between[0], h.between[1]))
	if strings.Contains(err.Error(), "of host-0 is in use") {
		t.Errorf("%v: that port is another host's", err)
	}
}

func TestSSHTwoHosts(t *testing.T) {
	t.Parallel()
	h := newTwoHosts(t)
	s := h.spec(t)
	r := h.runtime(t)
	h.preflight(t, r)
	d, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d, want 200", status)
	}
	pids := deploytest.PIDs(t, s.Dir)
	output(t, "ip", "link", "set", h.links[1], "down")
	cut := time.Now()
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the cut goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok || e.Peer != "rank-host-1" || !strings.Contains(e.Status, "connection to host-1 lost") {
		t.Errorf("Err is %v, want the lost connection to host-1", d.Err())
	}
	err = d.Stop(t.Context())
	infra(t, err, "host-1 is out of reach with process", h.servers[1].tmp, "the next start")
	endsSoon(t, pids) // the keeper over there sees to its own
	t.Logf("all ended %v after the cut", time.Since(cut))
	nothingIn(t, h.servers[0].tmp)
	nothingIn(t, h.servers[1].tmp)
	_, err = r.Start(t.Context(), s)
	infra(t, err, "connect to host-1") // whose record leads there still
	output(t, "ip", "link", "set", h.links[1], "up")
	again := deploytest.Start(t, r, s)
	if err := again.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 6)
}
