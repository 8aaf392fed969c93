package arch

import "math"

// Shares of a matrix's 16-bit parameters: bytes per parameter of each format,
// scales included. NVFP4: 4 bits and an FP8 scale per 16; MXFP4: 4 bits and an
// 8-bit scale per 32; INT4: 4 bits and a 16-bit scale and zero per group of 128.
func (f Format) bytesPerParam() float64 {
	switch f {
	case FP8:
		return 1
	case NVFP4:
		return 0.5625
	case MXFP4:
		return 0.53125
	case INT4:
		return 0.53
	}
	return 2
}

// formats tells how the three kinds of matrices are stored. Embedding and head
// stay in 16 bit in every format; MXFP4 quantises the experts only.
func (m Model) formats() (attention, ffn, expert Format) {
	attention, ffn, expert = m.Format, m.Format, m.Format
	if m.Format == MXFP4 {
		attention, ffn = BF16, BF16
	}
	if m.AttentionFormat != "" {
		attention = m.AttentionFormat
	}
	return attention, ffn, expert
}

// Kernels names the matrix kernels that a checkpoint's format asks for: FP8 in
// blocks of weights has others than FP8 with a scale for each channel.
func (m Model) Kernels() Format {
	if m.Format == FP8 && m.QuantBlock > 0 {
		return FP8Block
	}
	return m.Format
}

// ExpertFormat is how the routed experts are stored.
func (m Model) ExpertFormat() Format { _, _, e := m.formats(); return e }

// LinearFormat is how the attention projections are stored.
func (m Model) LinearFormat() Format { a, _, _ := m.formats(); return a }

// Params is the number of weights; vision towers and MTP layers are left out.
func (m Model) Params() int64 {
	return m.EmbeddingParams() + m.untiedHead() + m.LinearParams() + m.normParams() + m.routedParams()
}

// Active is the number of weights multiplied per token: all but the embedding
// table, of which one row is read, and the experts a token is not routed to.
func (m Model) Active() int64 {
	a := m.HeadParams() + m.LinearParams() + m.normParams()
	if m.MoE != nil {
		a += int64(m.MoELayers()) * int64(m.MoE.Active) * m.ExpertParams()
	}
	return a
}

// EmbeddingParams is the number of weights of the embedding table.
func (m Model) EmbeddingParams() int64 { return int64(m.Vocab) * int64(m.Hidden) }

// HeadParams is the number of weights of the output head, which is applied to
// sampled rows only. It is the embedding table again when tied.
func (m Model) HeadParams() int64 { return int64(m.Vocab) * int64(m.Hidden) }

func (m Model) untiedHead() int64 {
	if m.TiedHead {
		return 0
	}
	return m.HeadParams()
}

// LinearParams is the number of weights that every token passes, over all
// layers: attention projections, dense and shared feed-forward, routers.
func (m Model) LinearParams() int64 { return m.AttentionParams() + m.FFNParams() }

// AttentionParams is the number of weights of the attention projections of all
// layers, linear-attention layers included.
func (m Model) AttentionParams() int64 {
	q, kv := m.attentionPerLayer()
	return int64(m.KVLayers())*(q+kv) + int64(m.linearLayers())*m.linearPerLayer()
}

// attentionPerLayer is the number of weights of one softmax-attention layer: those
// split by heads and those of the KV heads, which wide tensor parallelism replicates.
//
//	GQA: q + o = d*h*a (twice with an output gate on q, then o);  kv = 2*d*g*a
//	MLA: q through rank r_q or direct, kv up-projection, o;       kv = d*(r_kv + rope), on every rank
func (m Model) attentionPerLayer() (split, kv int64) {
	d, h, a := int64(m.Hidden), int64(m.Heads), int64(m.HeadDim)
	if l := m.MLA; l != nil {
		qk := int64(l.NopeDim + l.RopeDim)
		q := d * h * qk
		if l.QRank > 0 {
			q = d*int64(l.QRank) + int64(l.QRank)*h*qk
		}
		up := int64(l.KVRank) * h * int64(l.NopeDim+l.VDim)
		return q + up + h*int64(l.VDim)*d, d * int64(l.KVRank+l.RopeDim)
	}
	q := d * h * a
	if m.GatedQ {
		q *= 2
	}
	return q + h*a*d, 2 * d * int64(m.KVHeads) * a
}

// linearPerLayer is the number of weights of one gated-delta-net layer: query,
// key, value and gate projections, two scalars per value head, out projection.
// The depthwise convolution is too small to count.
func (m Model) linearPerLayer() int64 {
	l := m.Linear
	if l == nil {
		return 0
	}
	d, k, v := int64(m.Hidden), int64(l.KeyHeads*l.HeadDim), int64(l.ValueHeads*l.HeadDim)
	return d*(2*k+2*v) + 2*d*int64(l.ValueHeads) + v*d
}

func (m Model) linearLayers() int {
	if m.Linear == nil {
		return 0
	}
	return m.Linear.Layers
}

// KVLayers is the number of layers that keep keys and values, window layers included.
func (m Model) KVLayers() int { return m.Layers - m.linearLayers() }

// MoELayers is the number of layers with routed experts.
func (m Model) MoELayers() int {
	if m.MoE == nil {
		return 0
	}
	return m.Layers - m.MoE.DenseLayers
}

// DenseLayers is the number of layers with an ordinary feed-forward.
func (m Model) DenseLayers() int { return m.Layers - m.MoELayers() }

// FFNParams is the number of weights of dense feed-forwards (gate, up, down),
// shared experts and routers of all layers.
func (m Model) FFNParams() int64 {
	d := int64(m.Hidden)
	n := int64(m.DenseLayers()) * 3 * d * int64(m.FFN)
	if m.MoE != nil {
		n += int64(m.MoELayers()) * (3*d*int64(m.MoE.SharedDim) + d*int64(m.MoE.Experts))
	}
	return n
}

// ExpertParams is the number of weights of one routed expert of one layer, 0
// without experts.
func (m Model) ExpertParams() int64 {
	if m.MoE == nil {
		return 0
	}
	return 3 * int64(m.Hidden) * int64(m.MoE.Hidden)
}

func (m Model) routedParams() int64 {
	if m.MoE == nil {
		return 0
	}
	return int64(m.MoELayers()) * int64(m.MoE.Experts) * m.ExpertParams()
}

func (m Model) normParams() int64 { return int64(2*m.Layers+1) * int64(m.Hidden) }

// LinearBytes is the size of LinearParams as stored.
func (m Model) LinearBytes() int64 {
	a, f, _ := m.formats()
	return size(m.AttentionParams(), a) + size(m.FFNParams(), f)
}

// HeadBytes is the size of the output head, always in 16 bit.
func (m Model) HeadBytes() int64 { return size(m.HeadParams(), BF16) }

// ExpertBytes is the size of one routed expert of one layer.
func (m Model) ExpertBytes() int64 {
	_, _, e := m.formats()
	return size(m.ExpertParams(), e)
}

// WeightBytes is the size of all weights as stored.
func (m Model) WeightBytes() int64 { return m.WeightBytesPerGPU(1, 1, 1) }

// WeightBytesPerGPU is the size of the weights on the fullest of tp*pp ranks.
// Matrices are split over tp, layers over pp, the vocabulary over tp; a KV head
// is kept by each of the ranks that share it. Routed experts are given out over
// ep ranks (tp times the data-parallel size at most), and each is split over the
// tp/ep ranks that hold it: over all of tp with ep = 1, not at all with ep >= tp.
func (m Model) WeightBytesPerGPU(tp, pp, ep int) int64 {
	tp, pp, ep = max(tp, 1), max(pp, 1), max(ep, 1)
	af, ff, _ := m.formats()
	split, kv := m.attentionPerLayer()
	kvShare := float64(m.KVHeadsPerRank(tp)) / float64(max(m.KVHeads, 1))
	if m.MLA != nil {
		kvShare = 1
	}
	attention := float64(m.KVLayers())*(float64(split)/float64(tp)+float64(kv)*kvShare) +
		float64(m.linearLayers()*int(m.linearPerLayer()))/float64(tp)
	layers := attention*af.bytesPerParam() + float64(m.FFNParams())/float64(tp)*ff.bytesPerParam() + float64(m.normParams())*2
	perStage := math.Ceil(float64(m.Layers)/float64(pp)) / float64(m.Layers)
	ends := float64(m.EmbeddingParams()+m.untiedHead()) * 2 / float64(tp)
	if pp > 1 { // the first stage holds the embedding, the last the head
		ends = float64(m.EmbeddingParams()) * 2 / float64(tp)
	}
	return int64(layers*perStage+ends) + m.ExpertBytesPerGPU(tp, pp, ep)
}

// ExpertBytesPerGPU is the routed experts' part of WeightBytesPerGPU.
func (m Model) ExpertBytesPerGPU(tp, pp, ep int) int64 {
	if m.MoE == nil {
		return 0
	}
	tp, pp, ep = max(tp, 1), max(pp, 1), max(ep, 1)
	_, _, f := m.formats()
	perRank := float64(ceilDiv(int64(m.MoE.Experts), int64(ep))*m.ExpertParams()) / float64(max(1, tp/ep))
	perStage := math.Ceil(float64(m.Layers)/float64(pp)) / float64(m.Layers)
	return int64(float64(m.MoELayers()) * perRank * f.bytesPerParam() * perStage)
}

func size(params int64, f Format) int64 { return int64(float64(params) * f.bytesPerParam()) }

// KVHeadsPerRank is the number of KV heads one of tp ranks holds; heads are
// replicated when there are more ranks than heads.
func (m Model) KVHeadsPerRank(tp int) int {
	return (m.KVHeads + max(tp, 1) - 1) / max(tp, 1)
}

// KVBytesPerTokenLayer is the KV cache of one token in one layer of one of tp
// ranks: 2*g*a*elem for g local KV heads of dimension a, and (r_kv + rope)*elem on
// every rank for MLA.
func (m Model) KVBytesPerTokenLayer(elem, tp int) int64 {
	if m.MLA != nil {
		return int64(m.MLA.KVRank+m.MLA.RopeDim) * int64(elem)
	}
	return 2 * int64(m.KVHeadsPerRank(tp)) * int64(m.HeadDim) * int64(elem)
}

// KVBytesPerToken is the KV cache of one token in all layers of the whole
// model, elem bytes per element. Window layers count in full: KVBytes caps them.
func (m Model) KVBytesPerToken(elem int) int64 {
	return int64(m.KVLayers()) * m.KVBytesPerTokenLayer(elem, 1)
}

// KVBytesPerTokenRank is the KV cache of one token on the fullest of tp*pp ranks.
func (m Model) KVBytesPerTokenRank(elem, tp, pp int) int64 {
	return ceilDiv(int64(m.KVLayers()), int64(max(pp, 1))) * m.KVBytesPerTokenLayer(elem, tp)
}

// StateBytes is the recurrent state of one sequence, 0 without linear layers.
func (m Model) StateBytes() int64 {
	if m.Linear == nil {
		return 0
	}
	return m.Linear.StateBytes
}

// StateBytesRank is the recurrent state of one sequence on one of tp*pp ranks.
func (m Model) StateBytesRank(tp, pp int) int64 {
	return ceilDiv(m.StateBytes(), int64(max(tp, 1)*max(pp, 1)))
}

// StateBytesLayer is what one linear-attention layer keeps of one sequence on one
// of tp ranks: the recurrent state, and the inputs that the short convolution before
// it still sees, in 16 bit. It is 0 without such layers.
func (m Model) StateBytesLayer(tp int) int64 {
	l := m.Linear
	if l == nil || l.Layers == 0 {
		return 0
	}
	conv := int64(2*l.KeyHeads+l.ValueHeads) * int64(l.HeadDim) * int64(max(l.Conv-1, 0)) * 2
	return ceilDiv(l.StateBytes/int64(l.Layers)+conv, int64(max(tp, 1)))
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
