package tune

// Planned is what a race may still launch, before its first trial by its budget
// of launches alone: at most all, of which kept for the confirmation and what
// follows it.
func (r *Race) Planned() (all, kept int) {
	left := r.now.left()
	return left, left - max(0, r.now.searching())
}
