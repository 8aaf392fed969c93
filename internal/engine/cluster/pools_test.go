package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perflab/internal/engine"
)

// apart is a command with its engines in pools.
func apart(t *testing.T, line, pools, prefill, decode string) engine.Command {
	t.Helper()
	c, err := parsed(t, "0.32", line).Apart(pools, strings.Fields(prefill), strings.Fields(decode), []string{"--policy", "random"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// here is this machine, which nobody reaches by an address.
func here(devices ...string) []Node { return []Node{{Devices: devices}} }

// TestSpreadPools holds engines and router against files that were read in review.
func TestSpreadPools(t *testing.T) {
	const (
		vllm   = "HF_TOKEN=secret vllm serve m"
		sglang = "python3 -m sglang.launch_server --model-path m --tp-size 2"
	)
	for _, c := range []struct {
		name, line, pools, prefill, decode string
		nodes                              []Node
	}{
		{"pools-here", vllm, "2:1", "", "-tp 2", here("4", "5", "GPU-6", "7", "0")},
		{"pools-host", vllm + " --host {host}", "1:1", "", "", here("0", "1")},
		{"pools-remote", sglang, "1:1", "", "", nodesOf(1, 4)},
		{"pools-two", sglang, "1:2", "--tp-size 1", "", nodesOf(2, 4)},
		{"pools-three", vllm + " -tp 4 --host 10.0.0.9", "1:2", "", "", nodesOf(3, 4)},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts, err := Spread(apart(t, c.line, c.pools, c.prefill, c.decode), c.nodes, "")
			if err != nil {
				t.Fatal(err)
			}
			used := map[string]bool{}
			for i, p := range parts {
				if p.Front != (i == len(parts)-1) || p.Front == (p.Serves != "") || p.Front && len(p.Devices) > 0 || p.Devices == nil {
					t.Errorf("part %d is %+v", i, p)
				}
				for _, d := range p.Devices {
					if used[p.Node+d] {
						t.Errorf("device %s of %q is dealt twice", d, p.Node)
					}
					used[p.Node+d] = true
				}
			}
			golden(t, c.name, spread(parts))
		})
	}
}

// TestPoolsListen: an engine is reached by who starts it, and by the router at an address
// that it listens on.
func TestPoolsListen(t *testing.T) {
	for _, c := range []struct {
		host            string
		nodes           []Node
		listen, reached string
	}{
		{"", here("0", "1"), "127.0.0.1", "127.0.0.1"},
		{"", nodesOf(1, 2), "0.0.0.0", "127.0.0.1"},
		{"{host}", here("0", "1"), "{host}", "127.0.0.1"},
		{"0.0.0.0", here("0", "1"), "0.0.0.0", "127.0.0.1"},
		{"10.0.0.9", nodesOf(1, 2), "10.0.0.9", "10.0.0.9"},
		{"{host}", nodesOf(2, 1), "0.0.0.0", "10.20.0.4"},
	} {
		cmd := apart(t, "vllm serve m", "1:1", "", "")
		cmd.Host = c.host
		parts, err := Spread(cmd, c.nodes, "")
		if err != nil {
			t.Fatal(err)
		}
		first, router := parts[0], parts[len(parts)-1]
		if got := strings.Join(first.Argv, " "); !strings.Contains(got, " --host "+c.listen+" --port {port:prefill-0}") {
			t.Errorf("host %q on %d nodes: %s", c.host, len(c.nodes), got)
		}
		if got := strings.Join(router.Argv, " "); !strings.Contains(got, " --prefill http://"+c.reached+":{port:prefill-0} ") {
			t.Errorf("host %q on %d nodes: %s", c.host, len(c.nodes), got)
		}
		if want := "VLLM_NIXL_SIDE_CHANNEL_HOST=" + c.reached; !slices.Contains(first.Env, want) {
			t.Errorf("host %q on %d nodes: %v lacks %s", c.host, len(c.nodes), first.Env, want)
		}
	}
}

func TestPoolsHaveNoRoom(t *testing.T) {
	homeless := nodesOf(2, 1)
	homeless[1].Addr = ""
	for _, c := range []struct {
		line, pools, decode string
		nodes               []Node
		want                string
	}{
		{"vllm serve m -tp 2", "1:1", "", here("0", "1", "2"), "an engine of 2 GPUs has no place on 3 GPUs: each stands on one node, so use a smaller tp, or fewer engines"},
		{"vllm serve m -tp 3", "2:1", "", nodesOf(2, 4), "an engine of 3 GPUs has no place on 2 nodes of 4 GPUs: each stands on one node, so use a smaller tp, or fewer engines"},
		{"vllm serve m", "1:1", "-tp 8", nodesOf(2, 4), "an engine of 8 GPUs has no place on 2 nodes of 4 GPUs: each stands on one node, so use a smaller tp, or fewer engines"},
		{"vllm serve m", "1:1", "", homeless, "node 1 (b) has no address: say at which one the other nodes reach it"},
		{"vllm serve m", "1:1", "", nil, "a replica needs at least 1 node, and none is given: name one"},
	} {
		_, err := Spread(apart(t, c.line, c.pools, "", c.decode), c.nodes, "")
		if r, ok := errors.AsType[*engine.Rejection](err); !ok || r.Reason != c.want {
			t.Errorf("%s as %s on %d nodes: %v, want %q", c.line, c.pools, len(c.nodes), err, c.want)
		}
	}
}

func TestPoolRemarks(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve m": "UCX_NET_DEVICES in the environment names another", "python3 -m sglang.launch_server --model-path m": "--disaggregation-ib-device names another",
	} {
		c := apart(t, line, "1:1", "", "")
		if got := Remarks(c, nodesOf(2, 1), ""); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q", line, got)
		}
		if got := Remarks(c, nodesOf(1, 2), ""); len(got) > 0 {
			t.Errorf("%s on one node: %q", line, got)
		}
	}
}
