package hardware

// LookForTest is the look at the machine that a page shows.
func (s *Screen) LookForTest() *job { return s.look() }

// Over reports whether the job has ended.
func (j *job) Over() bool { return j.over() }
