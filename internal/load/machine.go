package load

// machineTicks is the time that all processors together spent, and of it what
// the host of a virtual machine gave to others.
type machineTicks struct{ all, steal uint64 }

// stolen is the share that was taken away between two samples; 0 where it is
// not known.
func (t machineTicks) stolen(before machineTicks) float64 {
	if t.all <= before.all {
		return 0
	}
	return float64(t.steal-before.steal) / float64(t.all-before.all)
}
