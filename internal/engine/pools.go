package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Pools are how many engines of a replica only compute prompts, and how many only generate,
// from the KV cache that the first send them; a router stands before both. The zero value is
// one engine that does all.
type Pools struct{ Prefills, Decodes int }

// Names of pools.
const (
	PrefillPool = "prefill"
	DecodePool  = "decode"
)

// NoPools is the value of Disaggregation that says what its absence says.
const NoPools = "none"

// mostEngines bounds either pool: more are a mistake.
const mostEngines = 1024

// ParsePools reads a value of Disaggregation.
func ParsePools(value string) (Pools, error) {
	if value == "" || value == NoPools {
		return Pools{}, nil
	}
	prefills, decodes, ok := strings.Cut(value, ":")
	p, errP := strconv.Atoi(prefills)
	d, errD := strconv.Atoi(decodes)
	if !ok || errors.Join(errP, errD) != nil || min(p, d) < 1 || max(p, d) > mostEngines {
		return Pools{}, fmt.Errorf("parameter %s=%q: write the numbers of prefill and of decode engines, such as 2:1, or %s", Disaggregation, value, NoPools)
	}
	return Pools{p, d}, nil
}

func (p Pools) String() string {
	if !p.Split() {
		return NoPools
	}
	return fmt.Sprintf("%d:%d", p.Prefills, p.Decodes)
}

// Split reports whether there are two pools.
func (p Pools) Split() bool { return p.Prefills > 0 }

// Pools are those of a replica of the command.
func (c Command) Pools() Pools {
	p, _ := ParsePools(c.Params[Disaggregation]) // New has read it
	return p
}

// Whole is the command as one engine that does all.
func (c Command) Whole() Command {
	if c.Pools().Split() {
		c.Params = maps.Clone(c.Params)
		delete(c.Params, Disaggregation)
		c.Prefill, c.Decode, c.Router = PoolUse{}, PoolUse{}, nil
	}
	return c
}

// PoolUse is what the engines of one pool are given beside what all engines are.
type PoolUse struct {
	Params map[string]string `json:"params,omitempty"` // over those of the command
	Extra  []string          `json:"extra,omitempty"`
}

// Args are what the engines of a pool are given besides, as flags of the command's engine.
func (u PoolUse) Args(of Command) ([]string, error) {
	e, err := ByName(of.Engine)
	if err != nil {
		return nil, err
	}
	of.Params = u.Params
	args, err := speller{of, e}.args()
	return append(args, u.Extra...), err
}

// Apart is the command with its engines in pools, of which each is given further flags, and
// the router too. What the engine does not take is an error as of Parse.
func (c Command) Apart(pools string, prefill, decode, router []string) (Command, error) {
	p, err := ParsePools(pools)
	switch {
	case err != nil:
		return Command{}, err
	case !p.Split() && len(prefill)+len(decode)+len(router) > 0:
		return Command{}, fmt.Errorf("flags are given for prefill engines, decode engines or their router, and there are none: say how many by %s, such as 2:1", Disaggregation)
	case !p.Split():
		return c, nil
	}
	e, err := ByName(c.Engine)
	if err != nil {
		return Command{}, err
	}
	if row, ok := e.Param(Disaggregation); !ok || row.fixed() {
		return Command{}, e.lacks(&Param{Name: Disaggregation}, pools)
	}
	c.Params = maps.Clone(c.Params)
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params[Disaggregation], c.Router = p.String(), router
	if c.Prefill, err = c.use(e, PrefillPool, prefill); err == nil {
		c.Decode, err = c.use(e, DecodePool, decode)
	}
	return c, err
}

// use is what flags give the engines of a pool.
func (c Command) use(e *Engine, pool string, flags []string) (PoolUse, error) {
	if len(flags) == 0 {
		return PoolUse{}, nil
	}
	m, err := Parse(slices.Concat(speller{c, e}.head(), flags))
	switch {
	case err != nil:
		return PoolUse{}, fmt.Errorf("%s engines: %w", pool, err)
	case m.Model != c.Model || m.Host != "" || m.Port != 0 || m.FilePath != "":
		return PoolUse{}, fmt.Errorf("%s engines: they are of the command's model, and have addresses of their own: leave out %s", pool, Join(flags))
	}
	m.Version, m.Help = c.Version, c.Help
	if rej := m.Fit(flags...); rej != nil {
		return PoolUse{}, fmt.Errorf("%s engines: %w", pool, rej)
	}
	return PoolUse{Params: m.Params, Extra: m.Extra}, nil
}

// Member is one engine of a pool.
type Member struct {
	Pool    string
	N       int     // its number in the pool
	Command Command // with what its pool has besides; it has no pools of its own
}

// Members are the engines of a replica, those that compute prompts first; one where the
// command has no pools. What a pool is given and the engine does not take is an error as of
// New.
func (c Command) Members() ([]Member, error) {
	p := c.Pools()
	if !p.Split() {
		return []Member{{Command: c}}, nil
	}
	prefill, err := c.member(PrefillPool, c.Prefill)
	if err != nil {
		return nil, err
	}
	decode, err := c.member(DecodePool, c.Decode)
	if err != nil {
		return nil, err
	}
	var out []Member
	for i := range p.Prefills {
		out = append(out, Member{PrefillPool, i, prefill})
	}
	for i := range p.Decodes {
		out = append(out, Member{DecodePool, i, decode})
	}
	return out, nil
}

// member is the command of an engine of a pool.
func (c Command) member(pool string, use PoolUse) (Command, error) {
	params := maps.Clone(c.Params)
	delete(params, Disaggregation)
	maps.Copy(params, use.Params)
	m, err := NewOpen(c.Engine, c.Model, params, slices.Concat(c.Extra, c.Unread, use.Extra))
	if err != nil {
		return Command{}, fmt.Errorf("%s engines: %w", pool, err)
	}
	switch {
	case c.Engine == "vllm" && !m.Has("--kv-transfer-config"):
		role := map[string]string{PrefillPool: "kv_producer", DecodePool: "kv_consumer"}[pool]
		m.Extra = append(m.Extra, "--kv-transfer-config", `{"kv_connector":"NixlConnector","kv_role":"`+role+`"}`)
	case c.Engine == "sglang":
		m.Extra = append(m.Extra, "--disaggregation-mode", pool)
	}
	m.Version, m.Env, m.File, m.Help, m.Host = c.Version, c.Env, c.File, c.Help, c.Host
	return m, nil
}

// Address is where an engine of a pool is reached by the others.
type Address struct {
	Host string
	Port string
	Side string // port over which engines agree on a transfer
}

// ServeArgv is the command line of an engine of a pool that listens on host, and what its
// environment needs besides.
func (m Member) ServeArgv(host string, at Address) (argv, env []string) {
	argv = m.Command.ArgvPort(host, at.Port)
	switch {
	case m.Command.Engine == "vllm":
		env = []string{"VLLM_NIXL_SIDE_CHANNEL_HOST=" + at.Host, "VLLM_NIXL_SIDE_CHANNEL_PORT=" + at.Side}
	case m.Pool == PrefillPool:
		argv = append(argv, "--disaggregation-bootstrap-port", at.Side)
	}
	return argv, slices.Concat(env, m.Command.Env)
}

// RouterArgv is the command line of the router before members at their addresses, which
// listens on host and port and has its own counters on the port metrics.
func (c Command) RouterArgv(host, port, metrics string, members []Member, at []Address) []string {
	argv := []string{"vllm-router", "--vllm-pd-disaggregation"}
	if c.Engine == "sglang" {
		argv = []string{"python3", "-m", "sglang_router.launch_router", "--pd-disaggregation"}
	}
	for i, m := range members {
		argv = append(argv, "--"+m.Pool, "http://"+at[i].Host+":"+at[i].Port)
		if c.Engine == "sglang" && m.Pool == PrefillPool {
			argv = append(argv, at[i].Side)
		}
	}
	if key := c.Flag("--api-key"); key != "" && !slices.ContainsFunc(c.Router, func(a string) bool { return flagName(a) == "--api-key" }) {
		argv = append(argv, "--api-key", key) // which engines ask of the router too
	}
	argv = append(argv, c.Router...)
	return append(argv, "--host", host, "--port", port, "--prometheus-port", metrics)
}

// Ports at which a command of pools prints its engines and the router's counters.
const (
	firstEnginePort = 8100
	firstSidePort   = 5600
	routerMetrics   = 29000
	sidePorts       = 16 // from one engine to the next: vLLM 0.11.0 takes one a rank
)

// poolLines are the commands of the engines and of the router, on one machine, each a line.
func (c Command) poolLines() (string, error) {
	members, err := c.Members()
	if err != nil {
		return "", err
	}
	at := make([]Address, len(members))
	var lines []string
	first := 0 // device of the engine
	for i, m := range members {
		at[i] = Address{Host: "127.0.0.1", Port: strconv.Itoa(firstEnginePort + i), Side: strconv.Itoa(firstSidePort + sidePorts*i)}
		argv, env := m.ServeArgv(at[i].Host, at[i])
		devices := make([]string, m.Command.World())
		for k := range devices {
			devices[k] = strconv.Itoa(first + k)
		}
		first += len(devices)
		lines = append(lines, shellLine(append([]string{"CUDA_VISIBLE_DEVICES=" + strings.Join(devices, ",")}, env...), argv))
	}
	e, err := ByName(c.Engine)
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(cmp.Or(c.Port, e.DefaultPort))
	router := c.RouterArgv(cmp.Or(c.Host, "127.0.0.1"), port, strconv.Itoa(routerMetrics), members, at)
	return strings.Join(append(lines, shellLine(nil, router)), "\n"), nil
}

// resolvePools resolves an engine of each pool, and holds them against each other.
func (c Command) resolvePools(gpus int, resolve func(Command) (Config, error)) (Config, error) {
	members, err := c.Members()
	if err != nil {
		return Config{}, err
	}
	var of [2]Config
	for i, m := range []Member{members[0], members[len(members)-1]} {
		if of[i], err = resolve(m.Command); err != nil {
			if rej, ok := errors.AsType[*Rejection](err); ok {
				return Config{}, &Rejection{Rule: rej.Rule, Log: rej.Log, Reason: m.Pool + " engines: " + rej.Reason}
			}
			return Config{}, fmt.Errorf("%s engines: %w", m.Pool, err)
		}
	}
	prefill, cfg, p := of[0], of[1], c.Pools()
	cfg.Prefills, cfg.Decodes, cfg.Prefill = p.Prefills, p.Decodes, &prefill
	cfg.GPUs, cfg.Port = c.World(), cmp.Or(c.Port, cfg.Port) // the router's: each engine has one of its own
	if rej := poolRule(&prefill, &cfg); rej != nil {
		return Config{}, rej
	}
	if cfg.GPUs > gpus {
		return Config{}, &Rejection{Rule: "gpus", Log: "torch.AcceleratorError: CUDA error: invalid device ordinal",
			Reason: fmt.Sprintf("%d prefill and %d decode engines take %d GPUs, and there are %d: use fewer engines, or a smaller tp", p.Prefills, p.Decodes, cfg.GPUs, gpus)}
	}
	return cfg, nil
}

// poolRule is what the engines of two pools must have alike, and what is not laid out here.
func poolRule(prefill, decode *Config) *Rejection {
	reject := func(format string, args ...any) *Rejection {
		reason := fmt.Sprintf(format, args...)
		return &Rejection{Rule: "pools", Reason: reason, Log: "ValueError: " + reason}
	}
	wide := func(c *Config) bool { return c.PP > 1 || c.DP > 1 && c.AttentionDP < 2 }
	guesser := func(c *Config) string { // that keeps a KV cache of its own
		if slices.Contains([]string{"", "ngram", "suffix"}, c.Spec) {
			return "no model"
		}
		return c.Spec
	}
	small, large := min(prefill.TP, decode.TP), max(prefill.TP, decode.TP)
	switch {
	case wide(prefill) || wide(decode):
		return reject("prefill and decode engines are laid out with tp (and SGLang's attention_dp) alone: use more engines in place of pp and dp")
	case len(prefill.Tiers)+len(decode.Tiers) > 0:
		return reject("prefill and decode engines are laid out without host caches, whose connector would take the place of the one by which they pass KV caches on: leave host_cache out")
	case prefill.KVBytes != decode.KVBytes:
		return reject("prefill engines keep %d bytes an element of the KV cache and decode engines %d: give both one kv_cache_dtype", prefill.KVBytes, decode.KVBytes)
	case prefill.Block != decode.Block:
		return reject("prefill engines have KV blocks of %d tokens and decode engines of %d: give both one block_size", prefill.Block, decode.Block)
	case guesser(prefill) != guesser(decode):
		return reject("prefill engines guess by %s and decode engines by %s, whose KV cache comes from the first: give both one speculative", guesser(prefill), guesser(decode))
	case large%small != 0:
		return reject("tp %d of prefill engines and tp %d of decode engines do not divide each other: a rank's KV cache cannot be shared out", prefill.TP, decode.TP)
	}
	return nil
}
