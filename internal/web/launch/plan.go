package launch

import (
	"cmp"
	"fmt"
	"slices"
)

// order is what follows for those that wait.
type order struct {
	ready    []string // ids of those that may start now
	position map[string]int
	waits    map[string]string
}

// plan says who may start when so many run at once. It goes by the order of those that wait.
// One whose place is taken lets others pass, but none that would take its place from it again.
func plan(all []*Launch, atOnce int) order {
	p := order{position: map[string]int{}, waits: map[string]string{}}
	var ahead, waiting []*Launch
	running := 0
	for _, l := range all {
		switch l.State {
		case Running:
			running++
			ahead = append(ahead, l)
		case Queued:
			waiting = append(waiting, l)
		}
	}
	slices.SortFunc(waiting, func(a, b *Launch) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) })
	for i, l := range waiting {
		p.position[l.ID] = i + 1
		blocker := slices.IndexFunc(ahead, func(other *Launch) bool { return other.Place.Shares(l.Place) })
		switch {
		case blocker >= 0:
			p.waits[l.ID] = fmt.Sprintf("for %s, which has or gets %s", ahead[blocker].Name, ahead[blocker].Place.Text())
		case running >= atOnce:
			p.waits[l.ID] = fmt.Sprintf("for one of the %d that run, the most at once", running)
		default:
			p.ready = append(p.ready, l.ID)
			running++
		}
		ahead = append(ahead, l)
	}
	return p
}
