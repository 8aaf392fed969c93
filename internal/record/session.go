package record

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
)

// sessions finds which requests belong together: one whose prompt goes on where an earlier one's
// ended is the next turn of its session. It remembers the latest prompts alone.
type sessions struct {
	seed   maphash.Seed
	salt   link
	origin string // makes names of this recording unlike those of others
	count  int
	ends   map[link][]ending
	order  []link // in which they came, as a ring
	at     int
}

// ending is how a prompt ended behind its last whole block.
type ending struct {
	units   int
	hash    uint64
	session string
}

// Limits of what is remembered: prompts in all, and of those that are alike up to their last block.
const (
	mostPrompts = 100_000
	mostAlike   = 256
)

func newSessions(salt link, origin string) *sessions {
	return &sessions{seed: maphash.MakeSeed(), salt: salt, origin: origin, ends: map[link][]ending{}}
}

// of is the session of a prompt.
func (s *sessions) of(c *cutter, links []link) string {
	session, ok := s.earlier(c, links)
	if !ok {
		s.count++
		session = s.name(grown, s.origin+strconv.Itoa(s.count))
	}
	rest := c.rest()
	s.remember(links[len(links)-1], ending{len(rest), s.hash(rest), session})
	return session
}

// name is a session's name without what it was made of.
func (s *sessions) name(kind byte, text string) string {
	units := make([]uint32, len(text))
	for i := range len(text) {
		units[i] = uint32(text[i])
	}
	return strconv.FormatInt(s.salt.next(kind, units).id(), 36)
}

// earlier is the session of the longest prompt that this one goes on from.
func (s *sessions) earlier(c *cutter, links []link) (session string, ok bool) {
	for k := len(links) - 1; k >= 0; k-- {
		behind := c.units
		if k > 0 {
			behind = c.units[c.ends[k-1]:]
		}
		best := 0
		for _, e := range s.ends[links[k]] {
			if e.units < len(behind) && e.units >= best && (k > 0 || e.units > 0) && s.hash(behind[:e.units]) == e.hash {
				best, session, ok = e.units, e.session, true
			}
		}
		if ok {
			return session, true
		}
	}
	return "", false
}

func (s *sessions) remember(l link, e ending) {
	if len(s.order) < mostPrompts {
		s.order = append(s.order, l)
	} else {
		old := s.order[s.at]
		if list := s.ends[old]; len(list) > 1 {
			s.ends[old] = list[1:]
		} else {
			delete(s.ends, old)
		}
		s.order[s.at] = l
		s.at = (s.at + 1) % mostPrompts
	}
	list := s.ends[l]
	if len(list) == mostAlike {
		copy(list, list[1:])
		list = list[:len(list)-1]
	}
	s.ends[l] = append(list, e)
}

func (s *sessions) hash(units []uint32) uint64 {
	b := make([]byte, 0, 4*len(units))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return maphash.Bytes(s.seed, b)
}
