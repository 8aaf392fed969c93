package workload

// Longest returns the longest requests of a workload: the one of most prompt and
// output tokens together, and the one of the longest prompt. exact says that a server
// counts no fewer tokens: prompts are made up, of words that are a token each at
// least, or were measured by the tokenizer. Else they are what package token estimates, or
// what there is to send depends on time or on answers. Requests of several
// texts, which a server reads one by one, do not count.
func (w *Workload) Longest() (whole, prompt Extent, exact bool) {
	see := func(e Extent) {
		e.Input += w.nonce.tokens
		if e.total() > whole.total() {
			whole = e
		}
		if e.Input > prompt.Input {
			prompt = e
		}
	}
	for i, r := range w.src.rows {
		switch {
		case w.src.conversations != nil:
			w.src.conversations[i].extents(w.Generates(), see)
		case r.documents == 0:
			see(Extent{r.input, r.output})
		}
	}
	known := w.spec.MadeUp() || w.builder.tok != nil
	return whole, prompt, known && !timeDecides(w.spec) && (!w.Generates() || w.spec.IgnoreEOS)
}
