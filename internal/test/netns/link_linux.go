package netns

import (
	"fmt"
	"strings"
	"time"
)

// Cut loses all that the machine sends and is sent, silently, as a network does
// that broke far away: nobody is told, and its interface stays up. Its end of the
// link leaves the bridge.
func (m *Machine) Cut() error { return m.port("nomaster") }

// Mend undoes Cut. What TCP sends again it sends when its own timer says so.
func (m *Machine) Mend() error { return m.port("master bridge") }

func (m *Machine) port(to string) error {
	if err := m.hub.ip(fmt.Sprintf("link set %s %s", m.Name, to)); err != nil {
		return fmt.Errorf("set the link of %s: %w", m.Name, err)
	}
	return nil
}

// Rate limits the machine's link to so many bytes a second each way; 0 lifts
// the limit. It is ErrMissing where the kernel has no token bucket (sch_tbf).
func (m *Machine) Rate(bytesPerSecond int64) error { return m.shape(bytesPerSecond, m.delay) }

// Delay delays what goes over the machine's link by d each way. It is
// ErrMissing where the kernel has no network emulator (sch_netem): there, use package relay.
func (m *Machine) Delay(d time.Duration) error { return m.shape(m.rate, d) }

// shape sets both ends of the link: each shapes what it sends. After an error
// the link has no limits.
func (m *Machine) shape(rate int64, delay time.Duration) error {
	if rate < 0 || delay < 0 {
		return fmt.Errorf("a link of %d bytes a second and %s of delay: neither can be negative", rate, delay)
	}
	if rate == m.rate && delay == m.delay {
		return nil
	}
	ends := []end{{m.hub, m.Name}, {m.space, "eth0"}}
	for _, e := range ends {
		e.clear()
	}
	m.rate, m.delay = 0, 0
	for _, e := range ends {
		err := e.space.tc(disciplines(e.device, rate, delay)...)
		if err == nil {
			continue
		}
		for _, e := range ends {
			e.clear()
		}
		if absent(err) {
			return missing("this kernel has not all of sch_tbf, which limits a rate, and sch_netem, which delays (package relay does both without): %w", err)
		}
		return fmt.Errorf("shape the link of %s: %w", m.Name, err)
	}
	m.rate, m.delay = rate, delay
	return nil
}

// end is one end of a link.
type end struct {
	space  *space
	device string
}

// clear lifts what limits the end. That there is nothing is an error of tc, so its errors mean
// nothing: what could not be lifted is in the way of what comes next.
func (e end) clear() { _ = e.space.tc(fmt.Sprintf("qdisc del dev %s root", e.device)) }

// absent says whether tc did not know a discipline: the kernel says no more.
func absent(err error) bool {
	return strings.Contains(err.Error(), "qdisc kind is unknown") || strings.Contains(err.Error(), "No such file or directory")
}

// disciplines are what tc is told: the delay at the root, the limit below it.
func disciplines(device string, rate int64, delay time.Duration) (lines []string) {
	parent := "root"
	if delay > 0 {
		// The default queue of a thousand packets would limit the rate.
		lines = append(lines, fmt.Sprintf("qdisc add dev %s root handle 1: netem delay %dus limit 100000", device, delay.Microseconds()))
		parent = "parent 1:1"
	}
	if rate > 0 {
		// A bucket of 10 ms, since the timer that fills it may be as coarse as 4 ms,
		// and of some packets.
		burst := max(16<<10, rate/100)
		lines = append(lines, fmt.Sprintf("qdisc add dev %s %s handle 10: tbf rate %dbps burst %d latency 100ms", device, parent, rate, burst))
	}
	return lines
}
