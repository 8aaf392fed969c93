package stat

// Error is the standard error of the estimate on the scale of logarithms, so
// about that of the estimate as a share of it; false where there are too few
// blocks to see it.
func (e Estimate) Error() (se float64, ok bool) {
	se, _, err := blockError(e.influence, false)
	return se, err == nil
}
