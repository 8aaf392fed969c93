package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
)

const gb = 1_000_000_000

// TestTiers: what each engine keeps below its devices' KV cache.
func TestTiers(t *testing.T) {
	q8 := "Qwen/Qwen3-8B"
	pool := mustResolve(t, one+h100+sg+q8).KVPoolBytes()
	for line, want := range map[string][]Tier{
		one + h100 + v + q8: nil,
		one + h100 + v + q8 + " --kv-offloading-size 32":                                 {{Name: HostTier, Bytes: 32 << 30, GBs: 64}},
		four + a100 + v + q8 + " -tp 4 --kv-offloading-size 1.5":                         {{Name: HostTier, Bytes: 3 << 29, GBs: 32}},
		one + h100 + v + q8 + " --kv-offloading-size 32 --no-enable-prefix-caching":      nil,
		one + h100 + v + q8 + " --kv-offloading-size 32 --kv-offloading-backend lmcache": nil,
		one + h100 + v + q8 + ` --kv-transfer-config {"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{"cpu_bytes_to_use":5000000000,"block_size":64}}`: {
			{Name: HostTier, Bytes: 5 * gb, Chunk: 64, GBs: 64}},
		one + h100 + v + q8 + ` --kv-transfer-config {"kv_connector":"NixlConnector"}`: nil,
		four + h100 + ": LMCACHE_MAX_LOCAL_CPU_SIZE=10 LMCACHE_LOCAL_DISK=file:///d LMCACHE_MAX_LOCAL_DISK_SIZE=100 vllm serve " + q8 + ` -tp 2 --kv-transfer-config {"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}`: {
			{Name: HostTier, Bytes: 20 << 30, Chunk: 256, Fetch: FetchBefore, GBs: 64}, {Name: DiskTier, Bytes: 200 << 30, Chunk: 256, Fetch: FetchBefore}},
		one + h100 + sg + q8 + " --enable-hierarchical-cache":                                                     {{Name: HostTier, Bytes: 2 * pool, Fetch: FetchLayers, GBs: 64}},
		one + h100 + sg + q8 + " --enable-hierarchical-cache --hicache-ratio 4 --hicache-write-policy write_back": {{Name: HostTier, Bytes: 4 * pool, WriteBack: true, Fetch: FetchLayers, GBs: 64}},
		four + h100 + sg + q8 + " --tp 4 --enable-hicache --hicache-size 8 --hicache-ratio 3":                     {{Name: HostTier, Bytes: 32 * gb, Fetch: FetchLayers, GBs: 64}},
		one + h100 + sg + q8 + " --hicache-size 8":                                                                nil, // without the switch it has no effect
	} {
		if d := cmp.Diff(want, mustResolve(t, line).Tiers); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

// TestHostCacheUnits: one parameter for all ranks of a copy, in each engine's own unit.
func TestHostCacheUnits(t *testing.T) {
	for _, tt := range []struct{ engine, params, want string }{
		{"vllm", "tp=4 host_cache=32", "vllm serve M -tp 4 --kv-offloading-size 32"},
		{"sglang", "tp=4 host_cache=32", "python3 -m sglang.launch_server --model-path M --tp-size 4 --enable-hierarchical-cache --hicache-size 8 --enable-metrics"},
		{"sglang", "host_cache=32 host_cache_ratio=2", "python3 -m sglang.launch_server --model-path M --enable-hierarchical-cache --hicache-size 32 --hicache-ratio 2 --enable-metrics"},
		{"sglang", "tp=4 host_cache=30", "host_cache 30 is not a whole number of GB on each of 4 ranks, as SGLang takes it: use 28 or 32"},
		{"trtllm", "tp=4 host_cache=32", "host_cache_size: 8589934592"},
		{"llamacpp", "host_cache=1.5", "llama-server -hf M -cram 1536 --metrics"},
		{"llamacpp", "host_cache=-1", "llama-server -hf M -cram -1 --metrics"},
	} {
		params := map[string]string{}
		for kv := range strings.FieldsSeq(tt.params) {
			name, value, _ := strings.Cut(kv, "=")
			params[name] = value
		}
		c, err := New(tt.engine, "M", params, nil)
		if err != nil {
			if err.Error() != tt.want {
				t.Errorf("%s %s: %v, want %s", tt.engine, tt.params, err, tt.want)
			}
			continue
		}
		if !strings.Contains(c.String(), tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.engine, tt.params, c, tt.want)
		}
		if d := cmp.Diff(params, c.Params); d != "" {
			t.Errorf("%s %s is read back otherwise: %s", tt.engine, tt.params, d)
		}
		again, err := ParseText(c.String())
		if err != nil || again.String() != c.String() {
			t.Errorf("%s is read as %s: %v", c, again, err)
		}
		if d := cmp.Diff(params, again.Params); d != "" && tt.engine != "trtllm" { // whose file keeps bytes of a rank
			t.Errorf("%s is read back otherwise: %s", c, d)
		}
	}
}

// TestHostCacheOfFile: TensorRT-LLM's file has bytes of a rank, which stay that whatever tp is.
func TestHostCacheOfFile(t *testing.T) {
	m, _ := arch.LookupModel("Qwen/Qwen3-8B")
	g, _ := arch.LookupAccelerator("h100-sxm")
	c, err := Command{Engine: "trtllm", Model: m.Name}.WithFile(map[string]any{"kv_cache_config": map[string]any{"host_cache_size": 4 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	for tp, want := range map[string]int64{"1": 4 << 30, "2": 8 << 30} {
		c.Params = map[string]string{TP: tp}
		cfg, err := c.Resolve(m, g, 2)
		if err != nil || len(cfg.Tiers) != 1 || cfg.Tiers[0].Bytes != want || !strings.Contains(c.String(), "host_cache_size: 4294967296") {
			t.Errorf("tp %s: %+v, %v: %s", tp, cfg.Tiers, err, c)
		}
	}
}

// TestHostMemory: what all copies keep must fit into what their hosts have.
func TestHostMemory(t *testing.T) {
	cmd, err := Parse(strings.Fields("vllm serve Qwen/Qwen3-8B --kv-offloading-size 100"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := arch.LookupModel("Qwen/Qwen3-8B")
	g, _ := arch.LookupAccelerator("h100-sxm")
	for _, tt := range []struct {
		have float64
		gpus int
		want string
	}{
		{0, 8, ""}, {800, 8, ""}, {100, 1, ""},
		{799, 8, "host caches of 8 x 100.0 GiB take 800.0 GiB, and the hosts have 799.0 GiB of memory: use a smaller host_cache"},
	} {
		g.HostGiB = tt.have
		got := ""
		if _, err := cmd.Resolve(m, g, tt.gpus); err != nil {
			got = err.Error()
			rej, ok := err.(*Rejection)
			if !ok || rej.Rule != "host-cache" {
				t.Fatal(err)
			}
			if class, ok := ClassOf("vllm", rej.Log); !ok || class != "host-cache" {
				t.Errorf("%q is of class %q", rej.Log, class)
			}
		}
		if got != tt.want {
			t.Errorf("%v GiB of %d: %q, want %q", tt.have, tt.gpus, got, tt.want)
		}
	}
}

// TestTierBlocks: a tier's size in blocks of the devices' cache, over all ranks.
func TestTierBlocks(t *testing.T) {
	c := mustResolve(t, four+h100+v+"Qwen/Qwen3-8B -tp 2 --kv-offloading-size 32")
	block := int64(16 * 36 * 2 * 8 * 128 * 2) // tokens, layers, keys and values, heads, elements, bytes
	if got, want := c.TierBlocks(c.Tiers[0]), int(32<<30/block); got != want || c.BlockBytes() != block/2 {
		t.Errorf("%d blocks of %d bytes a rank, want %d of %d", got, c.BlockBytes(), want, block/2)
	}
}

// TestModelledTiers: what Resolve makes tiers of is not said to be left out.
func TestModelledTiers(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve M --kv-offloading-size 8":                                                                                            "",
		"vllm serve M --kv-offloading-size 8 --kv-offloading-backend lmcache":                                                            "--kv-offloading-backend",
		`vllm serve M --kv-transfer-config {"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}`:                                    "",
		`LMCACHE_REMOTE_URL=lm://h:1 vllm serve M --kv-transfer-config {"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}`:        "--kv-transfer-config",
		`vllm serve M --kv-transfer-config {"kv_connector":"SharedStorageConnector","kv_role":"kv_both"}`:                                "--kv-transfer-config",
		"sglang serve --model M --enable-hierarchical-cache --hicache-write-policy write_back":                                           "",
		"sglang serve --model M --enable-hierarchical-cache --hicache-write-policy write_through_selective --radix-eviction-policy lfu":  "--hicache-write-policy --radix-eviction-policy",
		"sglang serve --model M --enable-hierarchical-cache --hicache-size 8 --hicache-storage-backend file --hicache-io-backend direct": "--hicache-storage-backend --hicache-io-backend",
	} {
		c, err := Parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Unmodelled(), " "); got != want {
			t.Errorf("%s: %q is not modelled, want %q", line, got, want)
		}
	}
}
