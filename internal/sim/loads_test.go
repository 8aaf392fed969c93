package sim

import (
	"math"

	"perflab/internal/stat"
)

// lengths draws n log-normal lengths of a mean, at least 4 and at most limit.
func lengths(n int, mean, sigma float64, limit int, purpose string) []int {
	r := stat.Stream(1, purpose)
	z := make([]float64, n)
	for i := range z {
		z[i] = r.NormFloat64()
	}
	draw := func(mu float64) (out []int, sum int) {
		for _, x := range z {
			l := min(limit, max(4, int(math.Exp(mu+sigma*x))))
			out, sum = append(out, l), sum+l
		}
		return out, sum
	}
	lo, hi := 0.0, 12.0
	for range 60 {
		mu := (lo + hi) / 2
		if _, sum := draw(mu); float64(sum) < mean*float64(n) {
			lo = mu
		} else {
			hi = mu
		}
	}
	out, _ := draw(lo)
	return out
}

// chat is n requests at once with the totals of the published ShareGPT runs;
// the shapes of the distributions are those that match their in-flight counts.
func chat(n int) []Job {
	in := lengths(n, 217.393, 1.45, 1024, "input")
	out := lengths(n, 201, 0.9, 1000, "output")
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = Job{Index: i, Prompt: prompt(i, in[i]), Output: out[i]}
	}
	return jobs
}

// burst is n requests of one size at once.
func burst(n, in, out int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = Job{Index: i, Prompt: prompt(i, in), Output: out}
	}
	return jobs
}

// prompt is n token ids that no other prompt begins with.
func prompt(i, n int) []uint32 {
	p := make([]uint32, n)
	for k := range p {
		p[k] = uint32(i)<<16 | uint32(k)
	}
	return p
}
