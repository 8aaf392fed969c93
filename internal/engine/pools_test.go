package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perflab/internal/arch"
)

func TestParsePools(t *testing.T) {
	for value, want := range map[string]Pools{"": {}, NoPools: {}, "1:1": {1, 1}, "2:1": {2, 1}, "1024:3": {1024, 3}} {
		got, err := ParsePools(value)
		if err != nil || got != want || got.Split() != (want.Prefills > 0) {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"2", "2:", ":1", "0:1", "1:0", "-1:1", "1:1:1", "a:b", "1025:1", "1:1025", "1.5:1", "9999999999999999999:1", "None"} {
		if got, err := ParsePools(value); err == nil || !strings.Contains(err.Error(), "such as 2:1, or none") {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
}

// FuzzParsePools: what is read is printed and read again, and within bounds.
func FuzzParsePools(f *testing.F) {
	for _, s := range []string{"", "none", "1:1", "02:1", "+1:1", "1:", "1024:1024"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		p, err := ParsePools(value)
		if err != nil {
			return
		}
		if again, err := ParsePools(p.String()); err != nil || again != p {
			t.Errorf("%q is %v, printed as %s, which is %v (%v)", value, p, p, again, err)
		}
		if p.Split() && min(p.Prefills, p.Decodes) < 1 || max(p.Prefills, p.Decodes) > mostEngines {
			t.Errorf("%q is %v", value, p)
		}
	})
}

// apart is a command line with its engines in pools.
func apart(t *testing.T, line, pools, prefill, decode, router string) (Command, error) {
	t.Helper()
	c, err := Parse(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	return c.Apart(pools, strings.Fields(prefill), strings.Fields(decode), strings.Fields(router))
}

func mustApart(t *testing.T, line, pools, prefill, decode, router string) Command {
	t.Helper()
	c, err := apart(t, line, pools, prefill, decode, router)
	if err != nil {
		t.Fatalf("%s as %s: %v", line, pools, err)
	}
	return c
}

// TestPoolLines: the commands of engines and router, as they paste into a shell.
func TestPoolLines(t *testing.T) {
	for _, c := range []struct{ line, pools, prefill, decode, router, want string }{
		{"HF_TOKEN=x vllm serve m -tp 2 --max-num-seqs 64 --port 9000", "1:2", "-tp 1 --max-num-batched-tokens 16384", "--no-enable-prefix-caching", "--policy round_robin", `
CUDA_VISIBLE_DEVICES=0 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5600 HF_TOKEN=x vllm serve m --max-num-seqs 64 --max-num-batched-tokens 16384 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' --host 127.0.0.1 --port 8100
CUDA_VISIBLE_DEVICES=1,2 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5616 HF_TOKEN=x vllm serve m -tp 2 --max-num-seqs 64 --no-enable-prefix-caching --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' --host 127.0.0.1 --port 8101
CUDA_VISIBLE_DEVICES=3,4 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5632 HF_TOKEN=x vllm serve m -tp 2 --max-num-seqs 64 --no-enable-prefix-caching --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' --host 127.0.0.1 --port 8102
vllm-router --vllm-pd-disaggregation --prefill http://127.0.0.1:8100 --decode http://127.0.0.1:8101 --decode http://127.0.0.1:8102 --policy round_robin --host 127.0.0.1 --port 9000 --prometheus-port 29000`},
		{"python3 -m sglang.launch_server --model-path m --host 0.0.0.0 --api-key k", "2:1", "", "--max-running-requests 64", "", `
CUDA_VISIBLE_DEVICES=0 python3 -m sglang.launch_server --model-path m --api-key k --enable-metrics --disaggregation-mode prefill --host 127.0.0.1 --port 8100 --disaggregation-bootstrap-port 5600
CUDA_VISIBLE_DEVICES=1 python3 -m sglang.launch_server --model-path m --api-key k --enable-metrics --disaggregation-mode prefill --host 127.0.0.1 --port 8101 --disaggregation-bootstrap-port 5616
CUDA_VISIBLE_DEVICES=2 python3 -m sglang.launch_server --model-path m --max-running-requests 64 --api-key k --enable-metrics --disaggregation-mode decode --host 127.0.0.1 --port 8102
python3 -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:8100 5600 --prefill http://127.0.0.1:8101 5616 --decode http://127.0.0.1:8102 --api-key k --host 0.0.0.0 --port 30000 --prometheus-port 29000`},
		// What the command says of the transfer, or the router's flags of a key, is not said twice.
		{`vllm serve m --kv-transfer-config {"kv_connector":"MooncakeConnector","kv_role":"kv_both"} --api-key k`, "1:1", "", "", "--api-key=r --kv-connector mooncake", `
CUDA_VISIBLE_DEVICES=0 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5600 vllm serve m --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}' --api-key k --host 127.0.0.1 --port 8100
CUDA_VISIBLE_DEVICES=1 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5616 vllm serve m --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}' --api-key k --host 127.0.0.1 --port 8101
vllm-router --vllm-pd-disaggregation --prefill http://127.0.0.1:8100 --decode http://127.0.0.1:8101 --api-key=r --kv-connector mooncake --host 127.0.0.1 --port 8000 --prometheus-port 29000`},
	} {
		got := "\n" + mustApart(t, c.line, c.pools, c.prefill, c.decode, c.router).String()
		if got != c.want {
			t.Errorf("%s as %s is\n%s\nwant\n%s", c.line, c.pools, got, c.want)
		}
	}
}

// TestApartRefuses: one sentence for what cannot be taken apart.
func TestApartRefuses(t *testing.T) {
	for _, c := range []struct{ line, pools, prefill, decode, router, want string }{
		{"vllm serve m", "2", "", "", "", "write the numbers of prefill and of decode engines"},
		{"vllm serve m", "", "-tp 2", "", "", "there are none: say how many by disaggregation"},
		{"vllm serve m", "none", "", "", "--policy random", "there are none"},
		{"trtllm-serve m", "1:1", "", "", "", "TensorRT-LLM has no setting for disaggregation=1:1"},
		{"llama-server -m m.gguf", "1:1", "", "", "", "llama.cpp has no setting for disaggregation=1:1"},
		{"vllm serve m", "1:1", "--no-such", "", "", "prefill engines: "},
		{"vllm serve m", "1:1", "", "-tp two", "", "decode engines: "},
		{"vllm serve m", "1:1", "", "--model other", "", "decode engines: they are of the command's model, and have addresses of their own: leave out --model other"},
		{"vllm serve m", "1:1", "--port 1", "", "", "leave out --port 1"},
	} {
		if _, err := apart(t, c.line, c.pools, c.prefill, c.decode, c.router); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %q: %v, want %s", c.line, c.pools, err, c.want)
		}
	}
	if c, err := apart(t, "vllm serve m", NoPools, "", "", ""); err != nil || c.Pools().Split() || c.String() != "vllm serve m" {
		t.Errorf("%s, %v", c, err)
	}
}

// TestMembers: what a pool is given goes over what the command says, also where that is the
// engine's default, and the command itself is as it was.
func TestMembers(t *testing.T) {
	c, err := New("vllm", "m", map[string]string{TP: "4", MaxNumSeqs: "64", Disaggregation: "2:1"}, []string{"--seed", "1"})
	if err != nil {
		t.Fatal(err)
	}
	c.Prefill = PoolUse{Params: map[string]string{TP: "1"}, Extra: []string{"--enforce-eager"}}
	c.Version, c.Host, c.Env = "0.32.0", "h", []string{"A=b"}
	before := c.String()
	members, err := c.Members()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members {
		got = append(got, m.Pool+" "+m.Command.Params[TP]+" "+m.Command.Params[MaxNumSeqs]+" "+m.Command.Params[Eager])
		if m.Command.Version != "0.32.0" || m.Command.Host != "h" || !slices.Equal(m.Command.Env, c.Env) || m.Command.Pools().Split() || m.Command.Flag("--seed") != "1" {
			t.Errorf("%s %d: %+v", m.Pool, m.N, m.Command)
		}
	}
	if want := []string{"prefill  64 true", "prefill  64 true", "decode 4 64 "}; !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
	if members[1].N != 1 || members[2].N != 0 || c.World() != 6 || c.String() != before || c.Whole().World() != 4 {
		t.Errorf("members %+v, world %d, whole %d\n%s", members, c.World(), c.Whole().World(), c)
	}
	one, err := c.Whole().Members()
	if err != nil || len(one) != 1 || one[0].Pool != "" {
		t.Errorf("whole: %+v, %v", one, err)
	}
	c.Decode.Params = map[string]string{AttentionDP: "2"}
	if _, err := c.Members(); err == nil || !strings.HasPrefix(err.Error(), "decode engines: vLLM has no setting for attention_dp=2") {
		t.Errorf("%v", err)
	}
	if c.World() != 1 { // Resolve says why
		t.Errorf("world %d", c.World())
	}
}

// resolvedPools resolves a command with its engines in pools on so many H100.
func resolvedPools(t *testing.T, version string, gpus int, line, pools, prefill, decode string) (Config, error) {
	t.Helper()
	c := mustApart(t, line, pools, prefill, decode, "")
	c.Version = version
	m, err := arch.LookupModel(c.Model)
	if err != nil {
		t.Fatal(err)
	}
	g, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	return c.Resolve(m, g, gpus)
}

func TestResolvePools(t *testing.T) {
	const q8 = "vllm serve Qwen/Qwen3-8B -tp 2"
	c, err := resolvedPools(t, "", 8, q8, "2:1", "--max-num-batched-tokens 16384", "-tp 4 --max-num-seqs 64")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Prefill
	if c.Prefills != 2 || c.Decodes != 1 || c.GPUs != 8 || c.TP != 4 || c.Seqs != 64 || p == nil || p.TP != 2 || p.Batched != 16384 || p.Seqs == 64 || p.Prefill != nil || c.Replicas(16) != 2 {
		t.Errorf("%+v with prefill %+v", c, p)
	}
	const sg8 = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"
	const moe = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4"
	for _, c := range []struct {
		version             string
		gpus                int
		line, pools         string
		prefill, decode     string
		rule, reason, inLog string
	}{
		{"", 2, "vllm serve Qwen/Qwen3-8B", "2:1", "", "", "gpus", "2 prefill and 1 decode engines take 3 GPUs, and there are 2: use fewer engines, or a smaller tp", "invalid device ordinal"},
		{"", 8, "vllm serve Qwen/Qwen3-8B -pp 2", "1:1", "", "", "pools", "laid out with tp (and SGLang's attention_dp) alone", "ValueError"},
		{"", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "", "-dp 2", "pools", "use more engines in place of pp and dp", ""},
		{"", 8, sg8, "1:1", "--dp 2", "", "pools", "use more engines in place of pp and dp", ""},
		{"", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "", "--kv-cache-dtype fp8", "pools", "prefill engines keep 2 bytes an element of the KV cache and decode engines 1: give both one kv_cache_dtype", ""},
		{"", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "--block-size 32", "", "pools", "KV blocks of 32 tokens and decode engines of 16: give both one block_size", ""},
		{"", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "", `-sc {"method":"eagle3","num_speculative_tokens":3,"model":"d"}`, "pools", "prefill engines guess by no model and decode engines by eagle3, whose KV cache comes from the first: give both one speculative", ""},
		{"", 8, sg8, "1:1", "--page-size 64", "", "pools", "KV blocks of 64 tokens and decode engines of 1", ""},
		{"", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "-tp 3", "-tp 2", "", "prefill engines: ", ""}, // which the heads refuse first
		{"", 8, "vllm serve Qwen/Qwen3-32B -tp 3", "1:1", "", "", "", "prefill engines: 64 attention heads cannot be divided over tp 3", ""},
		{"", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "", "--max-model-len 999999", "", "decode engines: ", ""},
		{"0.11.0", 8, "vllm serve Qwen/Qwen3-8B", "1:1", "", "--max-num-active-seqs 8", "version", "decode engines: --max-num-active-seqs is not in vLLM 0.11.0", ""},
	} {
		_, err := resolvedPools(t, c.version, c.gpus, c.line, c.pools, c.prefill, c.decode)
		rej, ok := errors.AsType[*Rejection](err)
		if !ok || c.rule != "" && rej.Rule != c.rule || !strings.Contains(rej.Reason, c.reason) || !strings.Contains(rej.Log, c.inLog) {
			t.Errorf("%s as %s (%s; %s): %#v, want %s: %s", c.line, c.pools, c.prefill, c.decode, err, c.rule, c.reason)
		}
	}
	for _, c := range []struct{ line, prefill, decode string }{
		{"vllm serve Qwen/Qwen3-8B", "-tp 4", "-tp 2"}, {"vllm serve Qwen/Qwen3-8B", "", `-sc {"method":"ngram","num_speculative_tokens":3}`}, {sg8, "--tp 2", ""}, {moe, "", "--dp 4 --enable-dp-attention"},
	} {
		if _, err := resolvedPools(t, "", 8, c.line, "1:1", c.prefill, c.decode); err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
	}
	// The rule alone: sizes that no model's heads allow.
	if rej := poolRule(&Config{TP: 2, KVBytes: 2, Block: 16}, &Config{TP: 3, KVBytes: 2, Block: 16}); rej == nil || !strings.Contains(rej.Reason, "tp 2 of prefill engines and tp 3 of decode engines do not divide each other") {
		t.Errorf("%+v", rej)
	}
}

// TestPoolFit: an installed engine's own list of flags counts for those that pools add.
func TestPoolFit(t *testing.T) {
	for line, lacking := range map[string]string{
		"vllm serve Qwen/Qwen3-8B":                                   "--kv-transfer-config",
		"python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B": "--disaggregation-mode",
	} {
		c := mustApart(t, line, "1:1", "", "", "")
		e, err := ByName(c.Engine)
		if err != nil {
			t.Fatal(err)
		}
		help := Help{Engine: e.Name, Version: "9.9"}
		for flag := range flagTables()[e.Name] {
			if flag != lacking {
				help.Flags = append(help.Flags, flag)
			}
		}
		slices.Sort(help.Flags)
		c.Help = &help
		m, err := arch.LookupModel(c.Model)
		if err != nil {
			t.Fatal(err)
		}
		g, err := arch.LookupAccelerator("h100-sxm")
		if err != nil {
			t.Fatal(err)
		}
		rej, ok := errors.AsType[*Rejection](func() error { _, err := c.Resolve(m, g, 2); return err }())
		if !ok || rej.Rule != "version" || !strings.Contains(rej.Reason, "prefill engines: "+lacking+" is not in this "+e.Title+" (9.9 by its own account)") {
			t.Errorf("%s: %v", line, rej)
		}
		if cfg, err := c.Whole().Resolve(m, g, 2); err != nil {
			t.Errorf("%s whole: %+v, %v", line, cfg, err)
		}
	}
}
