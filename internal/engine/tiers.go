package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/arch"
)

// Tier is memory below the KV cache of the devices: it keeps blocks after the devices have
// given them up, so that a prompt with their beginning need not be computed again.
type Tier struct {
	Name      string // HostTier or DiskTier
	Bytes     int64  // of one copy of the engine, on all of its ranks
	Chunk     int    // tokens that are kept together, 0 for a block of the device
	WriteBack bool   // a block is written when the device gives it up, otherwise when it is computed
	Moves     bool   // a block that is fetched is no longer here
	Fetch     Fetch
	GBs       float64 // of the link to it, each way and for each device, by its data sheet; 0 where the simulator has a constant of its own
}

// Names of tiers, as vLLM's and SGLang's counters call them.
const (
	HostTier = "host"
	DiskTier = "disk"
)

// Fetch is what goes on while blocks come back from a tier.
type Fetch byte

// Ways of fetching.
const (
	FetchAside  Fetch = iota // other requests' steps go on, and the request's first step waits for all of its blocks (vLLM's OffloadingConnector)
	FetchLayers              // the request's first step computes a layer while the next one's blocks come (SGLang)
	FetchBefore              // the request's first step begins when they have come (TensorRT-LLM, LMCache)
)

// tiers resolves where the engine keeps what its devices give up.
func (r *resolver) tiers() {
	if !r.cfg.Prefix {
		return
	}
	switch r.cfg.Engine {
	case "vllm":
		r.vllmTiers()
	case "sglang":
		r.sglangTiers()
	case "trtllm":
		size := r.float(HostCache, r.fileNumber(hostBytesKey)*float64(ranksOf(r.cmd))/gibibyte) // the file's own stays a rank's, whatever tp becomes
		if size > 0 {
			r.host(size*gibibyte, Tier{WriteBack: true, Moves: true, Fetch: FetchBefore})
		}
	}
}

// host adds a tier in the memory of the host.
func (r *resolver) host(bytes float64, t Tier) {
	t.Name, t.Bytes, t.GBs = HostTier, int64(min(bytes, 1<<60)), r.cfg.GPU.HostCoupling().GBs
	if r.cfg.GPU.Platform == arch.CPU { // a copy reads and writes one memory
		t.GBs = r.cfg.GPU.BandwidthGBs / 2
	}
	r.cfg.Tiers = append(r.cfg.Tiers, t)
}

// vllmTiers are those of the OffloadingConnector, by its own flags or named as the connector,
// and of LMCache inside of the engine. What LMCache's own server keeps is not known here.
func (r *resolver) vllmTiers() {
	if size := r.text(HostCache); size != "" {
		if r.text(HostCacheBackend) != lmcache {
			r.host(r.float(HostCache, 0)*gibibyte, Tier{})
		}
		return
	}
	c := connectorOf(r.cmd)
	switch {
	case c.Name == offloading && c.Extra.Bytes > 0:
		r.host(c.Extra.Bytes, Tier{Chunk: c.Extra.BlockSize})
	case c.Name == lmcacheInside:
		chunk := max(1, int(r.envNumber("LMCACHE_CHUNK_SIZE", 256)))
		ranks := float64(ranksOf(r.cmd))
		if envOf(r.cmd.Env, "LMCACHE_LOCAL_CPU") != "False" {
			r.host(r.envNumber("LMCACHE_MAX_LOCAL_CPU_SIZE", 5)*gibibyte*ranks, Tier{Chunk: chunk, Fetch: FetchBefore})
		}
		if size := r.envNumber("LMCACHE_MAX_LOCAL_DISK_SIZE", 0); size > 0 && envOf(r.cmd.Env, "LMCACHE_LOCAL_DISK") != "" {
			r.cfg.Tiers = append(r.cfg.Tiers, Tier{Name: DiskTier, Bytes: int64(size * gibibyte * ranks), Chunk: chunk, Fetch: FetchBefore})
		}
	}
}

// sglangTiers is the hierarchical cache: of a size, or of a ratio to the devices' cache.
func (r *resolver) sglangTiers() {
	t := Tier{WriteBack: r.text(HostCachePolicy) == "write_back", Fetch: FetchLayers}
	if r.text(HostCache) != "" {
		r.host(r.float(HostCache, 0)*1e9, t)
	} else if r.text(HostCacheRatio) != "" || r.flag(hierarchical) {
		r.host(r.float(HostCacheRatio, sglangHostRatio)*float64(max(0, r.cfg.KVPoolBytes()))*float64(ranksOf(r.cmd)), t)
	}
}

const (
	hierarchical    = "--enable-hierarchical-cache"
	hierarchicalAlt = "--enable-hicache"
	sglangHostRatio = 2 // of the hierarchical cache to the devices' where neither size nor ratio is given
	lmcache         = "lmcache"
	offloading      = "OffloadingConnector"
	lmcacheInside   = "LMCacheConnectorV1"
	transfer        = "--kv-transfer-config"
)

// connector is what of vLLM's --kv-transfer-config bears on tiers.
type connector struct {
	Name  string `json:"kv_connector"`
	Extra struct {
		Bytes     float64 `json:"cpu_bytes_to_use"`
		BlockSize int     `json:"block_size"`
	} `json:"kv_connector_extra_config"`
}

// connectorOf is the one that the command names; the zero value where it names none, or in a
// form that is not read here.
func connectorOf(c Command) (out connector) {
	if json.Unmarshal([]byte(c.Flag(transfer)), &out) != nil {
		return connector{}
	}
	return out
}

// tiered reports whether Resolve makes tiers of the command's connector.
func tiered(c Command) bool {
	k := connectorOf(c)
	return k.Name == offloading && k.Extra.Bytes > 0 || k.Name == lmcacheInside && envOf(c.Env, "LMCACHE_CONFIG_FILE") == "" && envOf(c.Env, "LMCACHE_REMOTE_URL") == ""
}

// envNumber is a variable's number, or another where it has none.
func (r *resolver) envNumber(name string, otherwise float64) float64 {
	v := envOf(r.cmd.Env, name)
	f, err := strconv.ParseFloat(v, 64)
	switch {
	case v == "":
		return otherwise
	case err != nil || f < 0:
		r.outside(name, "of at least 0", v)
	}
	return f
}

// ranksOf are the processes of a copy, each of which keeps its own part of a KV cache.
func ranksOf(c Command) int { return min(c.Count(TP), 1<<12) * min(c.Count(PP), 1<<12) }

// TierBlocks is how many blocks of the devices' KV cache a tier holds. Windows and states
// are not counted: what is reused of a prompt are the blocks of its full attention.
func (c Config) TierBlocks(t Tier) int {
	bytes := c.BlockBytes() * int64(max(1, c.TP*c.PP))
	if bytes <= 0 {
		return 0
	}
	return int(t.Bytes / bytes)
}

// BlockBytes is what a block of tokens takes on a rank.
func (c Config) BlockBytes() int64 {
	l := c.Layout()
	return l.Page * int64(max(1, l.Full))
}

// hostRule: what all copies keep in the memory of their hosts must have room there, where
// that is known.
func hostRule(c *Config, gpus int) *Rejection {
	need := int64(0)
	for _, t := range c.Tiers {
		if t.Name == HostTier {
			need += t.Bytes
		}
	}
	copies := max(1, c.DP) * max(1, c.Replicas(gpus))
	all := float64(need) * float64(copies) / gibibyte
	if c.GPU.HostGiB <= 0 || all <= c.GPU.HostGiB {
		return nil
	}
	const mib = 1 << 10
	log := fmt.Sprintf("ValueError: Not enough host memory available. Requesting %.2f GB but only have %.2f GB free. Please reduce the size of the hierarchical cache.", all*gibibyte/1e9, c.GPU.HostGiB*gibibyte/1e9)
	if c.Engine == "vllm" {
		log = fmt.Sprintf("RuntimeError: Insufficient space in /dev/shm for CPU KV offload shared region in /dev/shm: %.0f MiB required, %.0f MiB free. Increase /dev/shm (e.g. --shm-size or --ipc=host).", all*mib, c.GPU.HostGiB*mib)
	}
	return &Rejection{Rule: "host-cache", Log: log,
		Reason: fmt.Sprintf("host caches of %d x %.1f GiB take %.1f GiB, and the hosts have %.1f GiB of memory: use a smaller host_cache", copies, gib(need), all, c.GPU.HostGiB)}
}

// offloadRule: vLLM copies KV between GPUs and hosts, and has nothing to copy on a CPU.
func offloadRule(r *resolver) *Rejection {
	p := r.cfg.GPU.Platform
	if r.text(HostCache) == "" || p != arch.CPU && p != arch.NPU || r.text(HostCacheBackend) == lmcache {
		return nil
	}
	return &Rejection{Rule: "platform", Log: "Exception: CPU Offloading is currently only supported on CUDA-alike and XPU GPUs",
		Reason: fmt.Sprintf("vLLM offloads the KV caches of GPUs, and %s is none: leave host_cache out", r.cfg.GPU.Title)}
}

// radixRule: the hierarchical cache is the tree of prefixes, which must be on.
func radixRule(r *resolver) *Rejection {
	if r.text(PrefixCaching) != "false" || !r.flag(hierarchical) && cmp.Or(r.text(HostCache), r.text(HostCacheRatio)) == "" {
		return nil
	}
	size := cmp.Or(r.text(HostCacheRatio), strconv.Itoa(sglangHostRatio)) + " times the devices' cache"
	if v := r.text(HostCache); v != "" {
		size = v + " GB"
	}
	return &Rejection{Rule: "conflict", Log: "ValueError: The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be used at the same time. Please use only one of them.",
		Reason: fmt.Sprintf("a host cache of %s keeps what the prefix cache gives up, and prefix_caching is off: leave one of them out", size)}
}

// hostArgs are the flags of a size of the host cache, of which each engine has its own unit.
func (s speller) hostArgs(p *Param, value string) ([]string, error) {
	size, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return nil, fmt.Errorf("parameter %s=%q: not a number", p.Name, value)
	}
	switch s.engine.Name {
	case "llamacpp":
		if size > 0 {
			value = strconv.FormatFloat(size*1024, 'f', 0, 64)
		}
	case "sglang":
		each := size / float64(ranksOf(s.Command))
		if n := float64(int(each)); size <= 0 || n != each {
			least := max(1, int(each)) * ranksOf(s.Command)
			return nil, &Rejection{Rule: "value", Log: "launch_server.py: error: argument --hicache-size: invalid int value: '" + strconv.FormatFloat(each, 'g', -1, 64) + "'",
				Reason: fmt.Sprintf("%s %s is not a whole number of GB on each of %d ranks, as SGLang takes it: use %d or %d", HostCache, value, ranksOf(s.Command), least, least+ranksOf(s.Command))}
		}
		return []string{hierarchical, p.Flags[0], strconv.FormatFloat(each, 'f', 0, 64)}, nil
	}
	return []string{s.engine.spelling(s.Command, p.Flags), value}, nil
}

// hostCache turns what was read of a host cache into the parameter's unit.
func (p *parser) hostCache() {
	c := &p.cmd
	size, given := c.Params[HostCache]
	n, _ := strconv.ParseFloat(size, 64)
	if p.engine.Name == "sglang" {
		p.hierarchy(int(min(n, 1<<30)))
	} else if p.engine.Name == "llamacpp" && given && n > 0 {
		c.Params[HostCache] = strconv.FormatFloat(n/1024, 'f', -1, 64)
	}
}

// hierarchy files SGLang's hierarchical cache: the switch goes without saying where a size or a ratio is
// given, and without it they have no effect.
func (p *parser) hierarchy(each int) {
	c := &p.cmd
	if each <= 0 { // as if it were not given
		delete(c.Params, HostCache)
	}
	var rest []string
	on := false
	for _, arg := range c.Extra {
		if arg == hierarchical || arg == hierarchicalAlt {
			on = true
			continue
		}
		rest = append(rest, arg)
	}
	switch {
	case on && (c.Params[HostCache] != "" || c.Params[HostCacheRatio] != ""):
		c.Extra = rest
	case !on:
		for _, name := range []string{HostCache, HostCacheRatio} {
			if value := c.Params[name]; value != "" {
				param, _ := p.engine.Param(name)
				c.Extra = append(c.Extra, param.Flags[0], value)
				delete(c.Params, name)
			}
		}
	}
	if c.Params[HostCache] != "" {
		c.Params[HostCache] = strconv.Itoa(each * ranksOf(*c))
	}
	if len(c.Params) == 0 {
		c.Params = nil
	}
}

// hostBytes is a size of the host cache as TensorRT-LLM's file has it: bytes of a rank.
func hostBytes(c Command, value string) (int, error) {
	size, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || size < 0 || size >= 1<<22 {
		return 0, fmt.Errorf("parameter %s=%q: not a number of GiB", HostCache, value)
	}
	return int(size*gibibyte/float64(ranksOf(c)) + 0.5), nil
}
