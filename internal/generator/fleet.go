package generator

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Fleet is the machines that sent a run's load in place of the one that made the run. Each
// sent one shard of it.
type Fleet struct {
	Epoch  uint64  `json:"epoch,omitzero"` // number of the load, by which an agent tells it from others
	Agents []Agent `json:"agents"`         // the first is number 1 in the calls
}

// Agent is one machine of a fleet and its part of a load.
type Agent struct {
	ID        string     `json:"id,omitempty"`
	Name      string     `json:"name"`
	Version   string     `json:"version,omitempty"` // of perflab there
	Host      Host       `json:"host"`
	SelfCheck *SelfCheck `json:"self_check,omitempty"` // error bars of its client, where measured

	Shard    int    `json:"shard"`                    // of Of, from 0: every Of-th request, or conversation, from this one on
	Of       int    `json:"of"`                       // shards of the load
	Requests int    `json:"requests,omitzero"`        // of its shard, all turns of conversations among them; 0: time decides
	Limit    int    `json:"max_concurrency,omitzero"` // its part of the limit on calls in flight; 0: none
	Clock    string `json:"clock,omitempty"`          // who stamps its reads, as in the header

	Offset *Offset `json:"clock_offset,omitempty"` // nil: its clock was not compared with that of the machine that made the run
	Client *Client `json:"client,omitempty"`       // what it used; nil: it did not live to tell

	Sent   int           `json:"sent,omitzero"`    // requests, as far as it told
	Lost   string        `json:"lost,omitempty"`   // why its part was not finished; "": it was
	LostAt time.Duration `json:"lost_ns,omitzero"` // when, since the start of the run
}

// Offset is how far an agent's clock was from that of the machine that made the run, by exchanges
// in both directions.
type Offset struct {
	Offset    time.Duration `json:"offset_ns"` // the agent's clock is so much ahead
	Bound     time.Duration `json:"bound_ns"`  // it is no further from that than this
	DriftPPM  float64       `json:"drift_ppm,omitzero"`
	Exchanges int           `json:"exchanges,omitzero"`
	Shift     time.Duration `json:"shift_ns,omitzero"` // by which its calls were moved, since its start was off by as much
}

// Name is the name of an agent by its number in the calls; "" for none.
func (f *Fleet) Name(number int) string {
	if f == nil || number < 1 || number > len(f.Agents) {
		return ""
	}
	return cmp.Or(f.Agents[number-1].Name, f.Agents[number-1].ID, fmt.Sprintf("number %d", number))
}

// Names are those of the agents, in their order.
func (f *Fleet) Names() []string {
	out := make([]string, len(f.Agents))
	for i := range out {
		out[i] = f.Name(i + 1)
	}
	return out
}

// String says who the agents are: "2 agents: a, b"; "" of no fleet.
func (f *Fleet) String() string {
	switch {
	case f == nil:
		return ""
	case len(f.Agents) == 1:
		return "1 agent: " + f.Name(1)
	}
	return fmt.Sprintf("%d agents: %s", len(f.Agents), strings.Join(f.Names(), ", "))
}

// Limits are the parts of the limit on calls in flight: "22 + 21 + 21"; "" where there is none,
// or where one agent has all of it.
func (f *Fleet) Limits() string {
	if f == nil || len(f.Agents) < 2 || f.Agents[0].Limit == 0 {
		return ""
	}
	parts := make([]string, len(f.Agents))
	for i, a := range f.Agents {
		parts[i] = fmt.Sprint(a.Limit)
	}
	return strings.Join(parts, " + ")
}

// Lost are the numbers of the agents whose parts were not finished.
func (f *Fleet) Lost() []int {
	var out []int
	if f != nil {
		for i, a := range f.Agents {
			if a.Lost != "" {
				out = append(out, i+1)
			}
		}
	}
	return out
}

// Client is what the agents used as if they were one: numbers of things add up, and of what
// spoils figures it is the worst. Processor and wall time are those of the busiest.
func (f *Fleet) Client() Client {
	var all Client
	var busiest float64
	for i, a := range f.Agents {
		if a.Lost != "" {
			all.stopped(fmt.Sprintf("agent %s was lost: %s", f.Name(i+1), a.Lost))
		}
		c := a.Client
		if c == nil {
			continue
		}
		if busy, _ := c.Busy(); all.Wall == 0 || busy > busiest {
			busiest = busy
			all.Wall, all.CPU, all.Procs, all.CPUs = c.Wall, c.CPU, c.Procs, c.CPUs
		}
		if c.SchedP99 >= all.SchedP99 {
			all.SchedP50, all.SchedP99 = c.SchedP50, c.SchedP99
		}
		all.SchedMax, all.GCMax = max(all.SchedMax, c.SchedMax), max(all.GCMax, c.GCMax)
		all.Stolen, all.Memory = max(all.Stolen, c.Stolen), max(all.Memory, c.Memory)
		all.GCPause += c.GCPause
		all.Sockets, all.Opened, all.Unsent = all.Sockets+c.Sockets, all.Opened+c.Opened, all.Unsent+c.Unsent
		if c.Partial && a.Lost == "" {
			all.stopped(fmt.Sprintf("agent %s stopped: %s", f.Name(i+1), cmp.Or(c.StopNote, "it gave no reason")))
		}
	}
	return all
}

// stopped notes that not all was sent.
func (c *Client) stopped(why string) {
	c.Partial = true
	c.StopNote = strings.TrimPrefix(c.StopNote+"; "+why, "; ")
}

// Busy is the share of the processors that the client may use which it used; ok is false where
// that is not known.
func (c *Client) Busy() (share float64, ok bool) {
	procs := c.Processors()
	if c.Wall <= 0 || procs <= 0 {
		return 0, false
	}
	return float64(c.CPU) / (float64(c.Wall) * float64(procs)), true
}

// Processors is how many the client may use at a time.
func (c *Client) Processors() int {
	if c.CPUs > 0 {
		return min(c.Procs, c.CPUs)
	}
	return c.Procs
}
