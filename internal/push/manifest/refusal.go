package manifest

import "perflab/internal/store/scan"

// Refusal says why a directory with these facts is not taken into a laboratory, nor given out of one; ""
// for one that is. What somebody ended early is taken: nobody writes it any more.
func Refusal(f scan.Facts) string {
	switch {
	case f.Kind == scan.Site || f.Kind == scan.Folder:
		return "it is no run, series, study or import"
	case f.State == scan.Running:
		return "it is still being measured: wait until it has ended"
	case f.State == scan.Stopped && f.Kind == scan.Study:
		return "the study was stopped before its end: let it go on with perflab tune --resume"
	case f.State == scan.Stopped:
		return "it was cut off before its end: measure it again"
	case f.Fault != "":
		return "it cannot be read: " + f.Fault
	}
	return ""
}
