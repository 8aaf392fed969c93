package bench

import (
	"perflab/internal/result"
	"perflab/internal/workload"
)

// outputCounter counts the output of calls whose server did not, by the run's
// tokenizer, on their way to keep. Where the server itself would have to do
// it, they wait for the end of the load.
type outputCounter struct {
	tok      workload.Tokenizer
	deferred bool
	emit     func(result.Call)
	keep     func(result.Call) // told of each that waits
	waiting  []result.Call
}

func (k *outputCounter) add(c result.Call) {
	switch {
	case k.tok == nil || !c.OK() || c.Text == "" || c.Recount > 0 || c.Usage != nil && c.Usage.Completion > 0:
	case k.deferred:
		k.waiting = append(k.waiting, c)
		k.keep(c)
		return
	default:
		recount(&c, k.tok)
	}
	k.emit(c)
}

func (k *outputCounter) finish() {
	for i := range k.waiting {
		recount(&k.waiting[i], k.tok)
		k.emit(k.waiting[i])
	}
}

func recount(c *result.Call, tok workload.Tokenizer) {
	if ids, err := tok.Encode(c.Text, false); err == nil {
		c.Recount = len(ids)
	}
}
