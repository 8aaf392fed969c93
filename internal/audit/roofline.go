package audit

import (
	"fmt"
	"math"

	"perflab/internal/arch"
)

// title names the machine for a reader.
func (m machine) title() string {
	if m.gpus == 1 {
		return m.acc.Title
	}
	return fmt.Sprintf("%d x %s", m.gpus, m.acc.Title)
}

// bandwidth is that of all devices, bytes/s.
func (m machine) bandwidth() float64 { return float64(m.gpus) * m.acc.BandwidthGBs * 1e9 }

// flops is the peak of all devices for matrices of a format, 1/s. Four-bit
// weights may be multiplied in any wider format; the fastest counts.
func (m machine) flops(f arch.Format) float64 {
	t := m.acc.BF16TFLOPS
	if f != arch.BF16 {
		t = max(t, m.acc.FP8TFLOPS)
	}
	if f == arch.NVFP4 || f == arch.MXFP4 {
		t = max(t, m.acc.FP4TFLOPS)
	}
	return float64(m.gpus) * t * 1e12
}

// routing is the share of tokens that choose experts as if by an even draw of
// their own: text makes neighbours choose alike.
const routing = 0.7

// expertBytes is what T tokens touch of the routed experts of all layers:
//
//	E (1 - (1 - k/E)^(1 + s (T - 1)))   of E experts in each layer, k active, s = routing
func (m machine) expertBytes(tokens float64) float64 {
	moe := m.model.MoE
	if moe == nil {
		return 0
	}
	all := float64(moe.Experts)
	hit := all * (1 - math.Pow(1-float64(moe.Active)/all, 1+routing*(max(tokens, 1)-1)))
	return float64(m.model.MoELayers()) * hit * float64(m.model.ExpertBytes())
}

// denseBytes is the size of the weights that every step reads.
func (m machine) denseBytes() float64 {
	return float64(m.model.LinearBytes() + m.model.HeadBytes())
}

// step is the least time of a decode step of n sequences, in s: weights,
// touched experts, and recurrent states read and written, each once.
func (m machine) step(n float64) float64 {
	return (m.denseBytes() + m.expertBytes(n) + 2*n*float64(m.model.StateBytes())) / m.bandwidth()
}

// rate is the most tokens/s that n requests in flight can be given.
func (m machine) rate(n float64) float64 { return n * m.spec / m.step(n) }

// readPrompt is the least time to read what a prompt of T tokens touches, in s.
func (m machine) readPrompt(tokens float64) float64 {
	return (m.denseBytes() + m.expertBytes(tokens)) / m.bandwidth()
}

// multiply is the least time of the matrix products of T tokens, in s; the
// head and attention over the past are left out.
func (m machine) multiply(tokens float64) float64 {
	return m.multiplyDense(tokens) + m.multiplyExperts(tokens)
}

// multiplyDense is that of attention projections and dense layers.
func (m machine) multiplyDense(tokens float64) float64 {
	return 2 * float64(m.model.LinearParams()) * tokens / m.flops(m.model.LinearFormat())
}

// multiplyExperts is that of the routed experts.
func (m machine) multiplyExperts(tokens float64) float64 {
	if m.model.MoE == nil {
		return 0
	}
	active := float64(m.model.MoELayers()) * float64(m.model.MoE.Active) * float64(m.model.ExpertParams())
	return 2 * active * tokens / m.flops(m.model.ExpertFormat())
}

// allReduce is the time to sum the activations of T tokens over the devices,
// twice a layer, in s, at the full rate of the links.
func (m machine) allReduce(tokens float64) float64 {
	g := float64(m.gpus)
	bytes := 2 * (g - 1) / g * tokens * float64(m.model.Hidden) * 2
	return 2 * float64(m.model.Layers) * bytes / (m.acc.LinkGBs * 1e9)
}

// serialPrefill is the least time of a prompt of T tokens in s when dense
// layers, experts and communication follow each other.
func (m machine) serialPrefill(tokens float64) float64 {
	dense := max(m.denseBytes()/m.bandwidth(), m.multiplyDense(tokens))
	experts := max(m.expertBytes(tokens)/m.bandwidth(), m.multiplyExperts(tokens))
	return dense + experts + m.allReduce(tokens)
}
