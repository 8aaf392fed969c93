package launch

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/study"
)

// Place is what a launch uses alone, so that no two launches disturb each other. Empty:
// nothing that another could not use, as of what is predicted.
type Place []Spot

// Spot is devices of a machine, or a server that is up already.
type Spot struct {
	Machine  string   `json:"machine,omitempty"` // by the name that it is reached by; "": this one
	Devices  []string `json:"devices,omitempty"` // by index or UUID; cpu: its processors
	All      bool     `json:"all,omitempty"`     // its accelerators, whichever: the study does not say
	Endpoint string   `json:"endpoint,omitempty"`
}

// cpuDevice stands for the processors of a machine, where engines run on them.
const cpuDevice = "cpu"

// fleetPlace stands for the machines of a fleet that a study names by labels.
const fleetPlace = "the fleet"

// Text is how the spot reads.
func (s Spot) Text() string {
	machine := cmp.Or(s.Machine, "this machine")
	switch {
	case s.Endpoint != "":
		return s.Endpoint
	case s.All:
		return "accelerators of " + machine
	case slices.Equal(s.Devices, []string{cpuDevice}):
		return "processors of " + machine
	}
	return "accelerators " + strings.Join(s.Devices, ", ") + " of " + machine
}

// Text is how the place reads.
func (p Place) Text() string {
	var parts []string
	for _, s := range p {
		parts = append(parts, s.Text())
	}
	return cmp.Or(strings.Join(parts, "; "), "no machine of its own")
}

// Shares reports whether both use something that only one can have.
func (p Place) Shares(q Place) bool {
	return slices.ContainsFunc(p, func(s Spot) bool { return slices.ContainsFunc(q, s.shares) })
}

func (s Spot) shares(t Spot) bool {
	if s.Endpoint != "" || t.Endpoint != "" {
		return s.Endpoint == t.Endpoint
	}
	if s.Machine != t.Machine {
		return false
	}
	if s.All || t.All {
		return (s.All || s.accelerated()) && (t.All || t.accelerated())
	}
	return slices.ContainsFunc(s.Devices, func(a string) bool {
		return slices.ContainsFunc(t.Devices, func(b string) bool { return sameDevice(a, b) })
	})
}

// accelerated reports whether the spot has accelerators.
func (s Spot) accelerated() bool {
	return slices.ContainsFunc(s.Devices, func(d string) bool { return d != cpuDevice })
}

// sameDevice reports whether two names may be of one device: an index and a UUID may.
func sameDevice(a, b string) bool {
	if a == b {
		return true
	}
	_, aIndex := strconv.Atoi(a)
	_, bIndex := strconv.Atoi(b)
	return a != cpuDevice && b != cpuDevice && (aIndex == nil) != (bIndex == nil)
}

// placeOfStudy is what a study uses alone, in an environment.
func placeOfStudy(s *study.Study, lookup func(string) (string, bool)) Place {
	r := s.Runtime
	switch r.Kind {
	case study.Predicted, study.Kubernetes: // a cluster gives each pod devices of its own, or has it wait
		return nil
	case study.Simulated: // which takes processor time of this machine to be on time
		return Place{{Devices: []string{cpuDevice}}}
	case study.Existing:
		if r.Service != "" {
			return append(endpoints(r.URLs), serviceSpot(r.Service))
		}
		return endpoints(r.URLs)
	}
	var p Place
	add := func(machine string, devices []string) {
		spot := Spot{Machine: machine, Devices: slices.Clone(devices)}
		switch {
		case s.OnCPU():
			spot.Devices = []string{cpuDevice}
		case len(devices) == 0:
			spot.All = true
		}
		p = append(p, spot)
	}
	for _, m := range r.Machines {
		add(machineName(cmp.Or(m.Address, m.DockerHost, m.Name)), m.Devices)
	}
	for _, h := range r.Hosts {
		add(machineName(cmp.Or(h.Address, h.Name)), h.Devices)
	}
	if r.Kind == study.Fleet && len(p) == 0 { // whichever have the labels: another study by them may have the same
		add(fleetPlace, nil)
	}
	if len(p) > 0 {
		return p
	}
	host := ""
	if r.Docker != nil {
		host = machineName(cmp.Or(r.Docker.Address, r.Docker.DockerHost)) // the first one where its socket is forwarded
	}
	add(host, localDevices(s, lookup))
	return p
}

// localDevices are those that the study will be dealt on this machine; nil where that is not
// told before it begins.
func localDevices(s *study.Study, lookup func(string) (string, bool)) []string {
	p, err := s.Pool(true, lookup)
	if err != nil {
		return nil // the study says it, and ends
	}
	if p.Devices == nil && s.Hardware.Devices == nil { // the first ones
		for i := range s.Hardware.GPUs {
			p.Devices = append(p.Devices, strconv.Itoa(i))
		}
	}
	return p.Devices
}

// machineName is the name that a machine has here, of an address of it; "" of this one.
func machineName(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		address = u.Hostname() // of a socket ""
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	if ip := net.ParseIP(address); address == "localhost" || ip != nil && ip.IsLoopback() {
		return ""
	}
	return address
}

// serviceSpot is a Service of a cluster, which two launches cannot measure at once.
func serviceSpot(name string) Spot { return Spot{Endpoint: "Service " + name} }

// endpoints are the servers behind base URLs.
func endpoints(urls []string) Place {
	var p Place
	for _, text := range urls {
		at := text
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
			at = net.JoinHostPort(cmp.Or(machineName(u.Hostname()), "127.0.0.1"), port)
		}
		p = append(p, Spot{Endpoint: at})
	}
	return p
}
