package workload

// MostShards is how many machines can each have a part of the workload: none has fewer than one
// request, or conversation, and one place of the concurrency limit. 0: any number.
func (w *Workload) MostShards() int {
	most := w.spec.MaxConcurrency
	if w.supply != nil {
		return most
	}
	n := len(w.due)
	if w.long != nil {
		n = w.long.n
	}
	if most == 0 {
		return n
	}
	return min(most, n)
}

// ShardLimit is the part of the concurrency limit that shard i of n has; 0: there is none. The
// first ones have one more where it does not divide: 64 over 3 are 22, 21 and 21.
func (w *Workload) ShardLimit(i, n int) int {
	limit := w.spec.MaxConcurrency
	part := limit / n
	if i < limit%n {
		part++
	}
	return part
}

// ShardLen is how many requests shard i of n has, all turns of its conversations among them; 0
// where time decides.
func (w *Workload) ShardLen(i, n int) int {
	every := func(all int) int { return (all - i + n - 1) / n }
	switch {
	case timeDecides(w.spec):
		return 0
	case w.src.conversations != nil:
		turns := 0
		for k := i; k < len(w.due); k += n {
			turns += len(w.src.conversations[k].turns)
		}
		return turns
	case w.long != nil:
		return every(w.long.n)
	}
	return every(len(w.due))
}
