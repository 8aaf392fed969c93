package sim

import (
	"math"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// batch is what one step computes, summed over its sequences.
type batch struct {
	tokens  int     // T: prefill chunks, and 1 + drafts for each decode
	seqs    int     // S
	sampled int     // rows that pass the output head
	drafts  bool    // the step verifies drafted tokens
	prefill bool    // some sequence computes prompt tokens
	context float64 // tokens of KV cache that decodes read, full layers
	inside  float64 // the same for window layers
	past    float64 // tokens of KV cache that prefill chunks read
	pairs   float64 // query-key pairs of prefill chunks, full layers
	winned  float64 // the same for window layers
}

// decode adds a sequence that reads ctx tokens and computes n new ones.
func (b *batch) decode(ctx, n, window int) {
	b.tokens += n
	b.sampled += n
	b.seqs++
	b.context += float64(ctx)
	b.inside += float64(min(ctx, window))
}

// chunk adds c prompt tokens after p that are in the cache; last says that
// the chunk ends the prompt and a token is sampled.
func (b *batch) chunk(p, c, window int, last bool) {
	b.tokens += c
	b.seqs++
	b.prefill = true
	b.past += float64(p)
	b.pairs += causal(p+c, math.MaxInt) - causal(p, math.MaxInt)
	b.winned += causal(p+c, window) - causal(p, window)
	if last {
		b.sampled++
	}
}

// causal is the number of query-key pairs of the first n tokens when each sees
// at most w: n^2/2, or w^2/2 + (n-w)w beyond the window.
func causal(n, w int) float64 {
	x, y := float64(n), float64(w)
	if n <= w {
		return x * x / 2
	}
	return y*y/2 + (x-y)*y
}

// stepModel turns a batch into seconds. Per step and device, with T tokens, S
// sequences, tp ranks, BW bytes/s of memory and PK FLOP/s:
//
//	linear    = pnorm4( W/(tp*BW*e_m), 2*P*T/(tp*PK*e_c) )
//	head      = the same with the sampled rows for T
//	experts   = n_moe*pnorm2( E_hit*p_e*b/(r*BW*m_m), 2*p_e*E_hit*max(t, R+t/2)/(r*PK*m_c) ) * imbalance
//	            E_hit = E*(1-(1-k/E)^(1+s*(T-1))), R = T*k/E_hit rows an expert in tiles of t
//	rows      = n_moe*imbalance*k_r*T*(6*d + 12*w)/(BW*m_m), w columns of an expert on a rank
//	kv        = context*bytes/(BW*k) + 2*state*S/(BW*k_m)
//	            k = k_m in pure decode steps, min(k_m, 8*kappa/G) beside prefill
//	flash     = 4*heads*dim*layers*pairs/(tp*PK*f_c) + past*bytes/(BW*k_m)
//	allreduce = 2*L*( lat(tp) + 2*(tp-1)/tp*T*d*2/bw )
//	element   = el*T*d*2*L/BW
//	overhead  = t_step + t_layer*L' + t_seq*S + k*(t_draft + t_draft_seq*S)   (k drafted tokens)
//	launches  = t_launch*L', where no graph covers the step; L' = L + 0.7*n_moe + 0.7*n_mla
//	drafting  = k*( (linear + experts)/L + head ), of a row for each sequence
//
// In decode steps that a captured graph covers T is the graph's size, but for what
// experts are hit. W and P are bytes and number of the weights that every token passes, G the
// query heads per KV head on a rank. Dense kernels overlap reading and
// arithmetic (a p-norm of 4); experts less (of 2), as each begins anew.
//
// Pipeline stages work on PP equal parts of the batch in turn, so a round over
// all sequences takes what the whole stack takes for one part; data-parallel
// ranks share the batch equally and step together.
type stepModel struct {
	parts float64 // PP*DP: equal parts of the batch
	pace  float64 // times all terms but launches, which have it in them

	linear, head gemm
	moeLayers    float64
	experts      float64 // E
	active       float64 // k
	routing      float64 // s
	moeRead      float64 // s per expert hit, all layers
	moeCompute   float64 // s per token, all layers
	moeMove      float64 // s per token, all layers: activations of the routed rows
	tile         float64 // rows of a tile
	moeGather    float64 // DP ranks whose tokens meet in one expert rank

	kvDecode, kvMixed float64 // s per token read, all KV layers
	fullShare         float64 // KV layers without a window / KV layers
	state             float64 // s per sequence
	flash             float64 // s per pair, all attention layers

	reduceFixed, reduceToken, element float64 // s, s per token, s per token

	step, perSeq       float64 // s
	launch             float64 // s that a step takes at least which no graph covers
	draft, draftPerSeq float64 // s
	layers, drafts     float64 // of the model; drafted tokens
	draftHead          float64 // of the head, that drafting passes
	graphMax           int
	promptGraphs       int   // tokens of the largest step with prompts that graphs cover
	pads               bool  // decode steps up to the sizes of graphs
	sizes              []int // of the graphs, where they are not the usual ones
}

// gemm is a group of dense products: read is the time to read its weights,
// compute the arithmetic per row.
type gemm struct{ read, compute float64 }

func (g gemm) time(rows float64) float64 {
	r, c := g.read, g.compute*rows
	return math.Sqrt(math.Sqrt(r*r*r*r + c*c*c*c))
}

// side is what the products' time counts as: reading or arithmetic, whichever
// is the longer.
func (g gemm) side(rows float64, t *Times) *time.Duration {
	if g.compute*rows > g.read {
		return &t.Arithmetic
	}
	return &t.Weights
}

// device is the accelerator at the rates of the site's on the model's family.
func (k constants) device(g arch.Accelerator) arch.Accelerator {
	rate := k.get("site_device") * k.get("rate_family")
	g.BandwidthGBs *= rate
	g.BF16TFLOPS, g.FP8TFLOPS, g.FP4TFLOPS = rate*g.BF16TFLOPS, rate*g.FP8TFLOPS, rate*g.FP4TFLOPS
	return g
}

// How many more kernels a layer has with experts (routing, sorting, their products) and with
// latent attention (its projections down and up, on both sides), as a share of those of one
// without. The former is what they add to the launches of vLLM 0.25 on an H200, and to a decode
// step of one sequence there: 42 us a layer, of 14 to 28; the latter is assumed by count.
const (
	expertKernels = 0.7
	latentKernels = 0.7
)

// eagle3Vocab is the vocabulary that EAGLE-3's drafts come from, of the tokens used most.
const eagle3Vocab = 32000

// newStepModel folds model, device, parallelism and constants into the
// coefficients of the equations above.
func newStepModel(cfg engine.Config, k constants) *stepModel {
	cfg.GPU = k.device(cfg.GPU)
	m, g := cfg.Model, cfg.GPU
	tp, pp, dp := float64(max(1, cfg.TP)), float64(max(1, cfg.PP)), float64(max(1, cfg.DP))
	bw := g.BandwidthGBs * 1e9
	peak16 := g.BF16TFLOPS * 1e12
	layers, hidden := float64(m.Layers), float64(m.Hidden)
	s := &stepModel{parts: pp * dp, pace: k.get("site_engine"), graphMax: cfg.GraphMax, pads: cfg.Engine != "trtllm", sizes: cfg.Graphs, promptGraphs: int(pp*dp) * cfg.PromptGraphs}

	ec, em, peak := k.get("gemm_compute"), k.get("gemm_bandwidth"), peakFLOPS(cfg)
	ec16, em16 := k.bf16("gemm_compute"), k.bf16("gemm_bandwidth")
	if m.LinearBytes() >= 2*m.LinearParams() { // only the experts are quantised
		ec, em, peak = ec16, em16, peak16
	}
	if tp == 1 { // a share above 1 stands for arithmetic under collectives
		ec, ec16 = min(ec, 1), min(ec16, 1)
	}
	s.linear = gemm{float64(m.LinearBytes()) / (tp * bw * em), 2 * float64(m.LinearParams()) / (tp * peak * ec)}
	s.head = gemm{float64(m.HeadBytes()) / (tp * bw * em16), 2 * float64(m.HeadParams()) / (tp * peak16 * ec16)}
	s.setExperts(cfg, k, tp, dp)
	s.setAttention(cfg, k, tp)

	if tp > 1 {
		l := g.Coupling(cfg.TP)
		s.reduceFixed = 2 * layers * k.get("ar_latency") * l.AllReduceLatency(cfg.TP) * 1e-6
		s.reduceToken = 2 * layers * 2 * (tp - 1) / tp * hidden * 2 / (k.get("ar_bandwidth") * l.GBs * 1e9)
	}
	s.element = k.get("element") * hidden * 2 * layers / bw
	host := k.get("site_host")
	if cfg.Overlap {
		host *= 1 - min(1, k.get("overlap"))
	}
	kernels := layers + expertKernels*float64(m.MoELayers())
	if m.MLA != nil {
		kernels += latentKernels * layers
	}
	s.step = host * (k.get("t_step")*1e-3 + k.get("t_layer")*1e-6*kernels)
	s.launch = k.host() * k.get("t_launch") * 1e-6 * kernels
	s.perSeq = host * k.get("t_seq") * 1e-6
	s.layers, s.drafts, s.draftHead = layers, float64(cfg.SpecTokens), 1
	if cfg.Spec == "eagle3" && m.Vocab > eagle3Vocab {
		s.draftHead = float64(eagle3Vocab) / float64(m.Vocab)
	}
	if cfg.Engine == "sglang" { // its graphs are captured by sequences
		s.graphMax *= max(1+cfg.SpecTokens, cfg.SpecVerify)
	}
	s.draft = host * k.get("t_draft") * 1e-3 * float64(cfg.SpecTokens)
	s.draftPerSeq = host * k.get("t_draft_seq") * 1e-6 * float64(cfg.SpecTokens)
	return s
}

func (s *stepModel) setExperts(cfg engine.Config, k constants, tp, dp float64) {
	moe := cfg.Model.MoE
	if moe == nil {
		return
	}
	s.tile = k.get("moe_tile")
	s.moeLayers = float64(cfg.Model.MoELayers())
	s.experts, s.active, s.routing = float64(moe.Experts), float64(moe.Active), min(1, k.get("routing"))
	ranks, imbalance := tp, 1.0
	rows, width := s.active, float64(moe.Hidden)/tp // of a token, on a rank
	s.moeGather = 1
	if cfg.EP > 1 {
		ranks, imbalance, s.moeGather = tp*dp, k.get("ep_imbalance"), dp
		rows, width = s.active/ranks*imbalance, float64(moe.Hidden)
	}
	bw := cfg.GPU.BandwidthGBs * 1e9
	s.moeRead = s.moeLayers * imbalance * float64(cfg.Model.ExpertBytes()) / (ranks * bw * k.get("moe_bandwidth"))
	s.moeCompute = s.moeLayers * imbalance * 2 * s.active * float64(cfg.Model.ExpertParams()) /
		(ranks * peakFLOPS(cfg) * k.get("moe_compute"))
	s.moeMove = s.moeLayers * rows * (6*float64(cfg.Model.Hidden) + 12*width) / (bw * k.get("moe_bandwidth"))
}

func (s *stepModel) setAttention(cfg engine.Config, k constants, tp float64) {
	m := cfg.Model
	bw := cfg.GPU.BandwidthGBs * 1e9
	kvLayers := float64(m.KVLayers())
	if kvLayers > 0 {
		s.fullShare = (kvLayers - float64(m.WindowLayers)) / kvLayers
	}
	bytes := float64(m.KVBytesPerTokenRank(max(1, cfg.KVBytes), max(1, cfg.TP), 1))
	group := float64(m.Heads) / tp / float64(max(1, m.KVHeadsPerRank(max(1, cfg.TP))))
	km := k.get("kv_bandwidth")
	s.kvDecode = bytes / (bw * km)
	s.kvMixed = bytes / (bw * min(km, 8*k.get("kv_mixed")/max(1, group)))
	s.state = 2 * float64(m.StateBytesRank(max(1, cfg.TP), 1)) / (bw * km)

	dims := 2 * float64(m.HeadDim) // of keys and of values
	if m.MLA != nil {
		dims = float64(m.MLA.NopeDim + m.MLA.RopeDim + m.MLA.VDim)
	}
	flash := k.get("flash_compute")
	if sm := cfg.GPU.SM; m.Sinks && sm > 0 && (sm < 90 || sm >= 120) {
		flash *= k.get("flash_sinks")
	}
	s.flash = 2 * float64(m.Heads) * dims * kvLayers / (tp * cfg.GPU.BF16TFLOPS * 1e12 * flash)
}

// registerShare is the share of Hopper's peak that products reach whose factors come from
// registers, as weights do that were widened there: its own instructions read them from
// shared memory, those of the devices before it reach 63 % (arXiv 2402.13499).
const registerShare = 0.63

// peakFLOPS is the device's peak for the checkpoint's format, or for 16 bit
// when the device has no units for it or the engine widens the weights first.
func peakFLOPS(cfg engine.Config) float64 {
	g := cfg.GPU
	peak := 0.0
	switch {
	case cfg.WeightOnly:
	case cfg.Model.Format == arch.FP8:
		peak = g.FP8TFLOPS
	case cfg.Model.Format == arch.NVFP4:
		peak = g.FP4TFLOPS
	}
	if peak == 0 {
		peak = g.BF16TFLOPS
	}
	if cfg.WeightOnly && g.SM >= 90 && g.SM < 100 {
		peak *= registerShare
	}
	return peak * 1e12
}

// duration is the length of a step; what each term takes is added to spent.
func (s *stepModel) duration(b *batch, spent *Times) time.Duration {
	share := 1 / s.parts
	tokens := max(1, float64(b.tokens)*share)
	rows := tokens // of activations: a decode step is computed as a captured graph
	if !b.prefill {
		rows = s.padded(tokens)
	}
	t := tally{pace: s.pace}
	t.add(s.linear.side(rows, spent), s.linear.time(rows))
	if b.sampled > 0 {
		rows := max(1, float64(b.sampled)*share)
		t.add(s.head.side(rows, spent), s.head.time(rows))
	}
	if s.experts > 0 {
		t.addExperts(spent, s.expertTimes(tokens, rows, 1))
	}
	kv := s.kvDecode
	if b.prefill {
		kv = s.kvMixed
	}
	t.add(&spent.KV, share*kv*(s.fullShare*b.context+(1-s.fullShare)*b.inside))
	t.add(&spent.KV, share*s.state*float64(b.seqs))
	t.add(&spent.KV, share*s.kvDecode*s.fullShare*b.past)
	t.add(&spent.Attention, share*s.flash*(s.fullShare*b.pairs+(1-s.fullShare)*b.winned))
	t.add(&spent.Collectives, s.reduceFixed+rows*s.reduceToken)
	t.add(&spent.Elementwise, rows*(s.element+s.moeGather*s.moeMove))
	if b.drafts {
		t.add(&spent.Drafting, s.draft+s.draftPerSeq*float64(b.seqs)*share+s.drafting(max(1, float64(b.seqs)*share)))
	}
	if !s.covered(b) {
		t.until(&spent.Launches, s.launch)
	}
	t.add(&spent.Host, s.step+s.perSeq*float64(b.seqs)*share)
	t.until(&spent.Host, 1e-6) // no step is shorter than a microsecond
	return t.length
}

// covered says whether a step runs as a captured graph, whose kernels are launched at once.
func (s *stepModel) covered(b *batch) bool {
	if b.prefill {
		return b.tokens <= s.promptGraphs
	}
	return b.tokens <= s.graphMax
}

// padded is the size of the graph that a decode step of n tokens runs as: those
// that vLLM and SGLang capture by default, or those of the configuration.
// TensorRT-LLM pads none unless it is told to.
func (s *stepModel) padded(n float64) float64 {
	for _, size := range s.sizes {
		if n <= float64(size) {
			return float64(size)
		}
	}
	switch {
	case !s.pads || n <= 2 || n > float64(s.graphMax):
		return n
	case n <= 4:
		return 4
	case n <= 256:
		return min(8*math.Ceil(n/8), float64(s.graphMax))
	}
	return min(16*math.Ceil(n/16), float64(s.graphMax))
}

// padding is by how much the arithmetic of an expert with so many rows grows, as
// it is done in whole tiles: half a tile is lost on average, and one is the least.
func (s *stepModel) padding(rows float64) float64 {
	return max(s.tile, rows+s.tile/2) / rows
}

// tally adds up the terms of a step. A term's length is what it adds to the
// rounded sum, so that the lengths add up to the step's, to the nanosecond.
type tally struct {
	pace   float64 // that each term is times
	sum    float64 // s
	length time.Duration
}

func (t *tally) add(to *time.Duration, s float64) {
	t.sum += t.pace * s
	d := seconds(t.sum)
	*to += d - t.length
	t.length = d
}

// until adds what is missing of a time that the step takes at least.
func (t *tally) until(to *time.Duration, least float64) {
	if least > t.sum {
		t.sum = least
		t.add(to, 0)
	}
}

// expertTimes are reading and arithmetic of the routed experts of a share of the
// layers for so many tokens, in rows with their padding, which goes where other
// padding does and hits no further expert.
func (s *stepModel) expertTimes(tokens, rows, share float64) (t readCompute) {
	n := tokens * s.moeGather
	hit := s.experts * (1 - math.Pow(1-s.active/s.experts, 1+s.routing*(n-1)))
	n = rows * s.moeGather
	return readCompute{share * hit * s.moeRead, share * n * s.moeCompute * s.padding(n*s.active/hit)}
}

// drafting is what the weights of the draft layers cost: for each drafted token a
// layer like the model's and the head, over a row of each sequence.
func (s *stepModel) drafting(seqs float64) float64 {
	t := s.linear.time(seqs)/s.layers + s.draftHead*s.head.time(seqs)
	if s.experts > 0 {
		t += s.expertTimes(seqs, seqs, 1/s.moeLayers).both()
	}
	return s.drafts * t
}

// readCompute are the two sides of the experts' time, which overlap in part, as
// each expert begins anew.
type readCompute struct{ read, compute float64 }

func (t readCompute) both() float64 { return math.Hypot(t.read, t.compute) }

// addExperts adds the routed experts; both sides get their share.
func (t *tally) addExperts(spent *Times, x readCompute) {
	both := x.both()
	t.add(&spent.ExpertReads, both*x.read/(x.read+x.compute))
	t.add(&spent.Experts, both*x.compute/(x.read+x.compute))
}
