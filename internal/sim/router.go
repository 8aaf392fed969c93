package sim

// What the routers of vLLM (0.1.15) and SGLang (gateway 0.3) go by unless told otherwise,
// cache_aware in both pools: the engine that has had the longest beginning of the prompt,
// if that is more than routedShare of it; else the one with the fewest requests. Whatever
// the prompt, engines are levelled when one has unevenMore requests more than another and
// unevenTimes as many.
const (
	routedShare = 0.3
	unevenMore  = 64
	unevenTimes = 1.5

	routedBlock  = 16      // tokens in which beginnings are told apart; the routers compare characters
	routedBlocks = 1 << 19 // that are remembered before the older half is forgotten
)

// router chooses among the engines of a pool.
type router struct {
	engines []*member
	had     [2]map[uint64]*member // by the hash of a beginning; what has come lately is in the first
}

// stats are those of all engines together. When no step ran, the group counts.
func (r *router) stats() (s Stats) {
	for i, m := range r.engines {
		if c := m.core.Stats(); i == 0 {
			s = c
		} else {
			s = s.With(c)
		}
	}
	s.Waits.FrontEnd, s.Waits.Idle = 0, 0
	return s
}

// choose is the engine for a job.
func (r *router) choose(j *Job) *member {
	if len(r.engines) == 1 {
		return r.engines[0]
	}
	least, most := r.engines[0], r.engines[0]
	for _, m := range r.engines[1:] {
		if m.requests < least.requests || m.requests == least.requests && m.tokens < least.tokens {
			least = m
		}
		if m.requests > most.requests {
			most = m
		}
	}
	best := least
	uneven := most.requests-least.requests > unevenMore && float64(most.requests) > unevenTimes*float64(least.requests)
	if known, tokens := r.longest(j); !uneven && float64(tokens) > routedShare*float64(j.shared()) {
		best = known
	}
	r.remember(j, best)
	return best
}

// longest is the engine that has had the longest beginning of a prompt, and how long that
// is.
func (r *router) longest(j *Job) (m *member, tokens int) {
	for h := range j.beginnings(routedBlock) {
		next := r.had[0][h]
		if next == nil {
			next = r.had[1][h]
		}
		if next == nil {
			break
		}
		m, tokens = next, tokens+routedBlock
	}
	return m, tokens
}

// remember notes that an engine gets a prompt.
func (r *router) remember(j *Job, m *member) {
	for h := range j.beginnings(routedBlock) {
		if r.had[0] == nil || len(r.had[0]) >= routedBlocks {
			r.had[0], r.had[1] = map[uint64]*member{}, r.had[0]
		}
		r.had[0][h] = m
	}
}
