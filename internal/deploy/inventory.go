package deploy

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"perflab/internal/hardware"
	"perflab/internal/proc"
)

// HostEntry is one machine of an inventory. What is left out comes from the ssh
// configuration, where Name is looked up as ssh does.
type HostEntry struct {
	Name      string `yaml:"name" json:"name" jsonschema:"description=Name of the machine in the study\\, and in the ssh configuration unless an address is given"`
	Address   string `yaml:"address,omitempty" json:"address,omitempty" jsonschema:"description=Host name or IP address to connect to"`
	User      string `yaml:"user,omitempty" json:"user,omitempty" jsonschema:"description=Account on the machine"`
	Port      int    `yaml:"port,omitempty" json:"port,omitempty" jsonschema:"description=Port of its ssh server"`
	Identity  string `yaml:"identity,omitempty" json:"identity,omitempty" jsonschema:"description=File with the private key to log in with"`
	Interface string `yaml:"interface,omitempty" json:"interface,omitempty" jsonschema:"description=Network interface that leads to the other machines of the cluster"`
	HCA       string `yaml:"hca,omitempty" json:"hca,omitempty" jsonschema:"description=InfiniBand or RoCE adapters\\, as NCCL_IB_HCA takes them"`
	GPUs      int    `yaml:"gpus,omitempty" json:"gpus,omitempty" jsonschema:"description=Accelerators of the machine"`

	Devices hardware.Devices `yaml:"devices,omitempty" json:"devices,omitempty" jsonschema:"description=Which of its accelerators engines may use\\, by index or UUID (default: the first gpus)"`
}

// Validate says what keeps the entry from being used.
func (h HostEntry) Validate() error {
	switch {
	case h.Name == "":
		return errors.New("a host has no name")
	case strings.HasPrefix(h.Name, "-") || strings.ContainsAny(h.Name, " \t\n"):
		return fmt.Errorf("host name %q begins with - or has a blank", h.Name)
	case strings.HasPrefix(h.Address, "-") || strings.ContainsAny(h.Address, " \t\n"):
		return fmt.Errorf("host %s: address %q begins with - or has a blank", h.Name, h.Address)
	case strings.HasPrefix(h.User, "-"):
		return fmt.Errorf("host %s: user %q begins with -", h.Name, h.User)
	case h.Port < 0 || h.Port > 65535:
		return fmt.Errorf("host %s: port %d is not within 1 to 65535", h.Name, h.Port)
	case h.GPUs < 0:
		return fmt.Errorf("host %s: %d GPUs are negative", h.Name, h.GPUs)
	case h.GPUs > 0 && h.Devices != nil && len(h.Devices) != h.GPUs:
		return fmt.Errorf("host %s: %d devices are named, and gpus is %d", h.Name, len(h.Devices), h.GPUs)
	}
	if err := h.Devices.Validate(); err != nil {
		return fmt.Errorf("host %s: devices: %w", h.Name, err)
	}
	return nil
}

// validateHosts says what keeps an inventory from being used.
func validateHosts(hosts []HostEntry) error {
	if len(hosts) == 0 {
		return errors.New("no host is given")
	}
	var errs []error
	for i, h := range hosts {
		errs = append(errs, h.Validate())
		if slices.ContainsFunc(hosts[:i], func(o HostEntry) bool { return o.Name == h.Name }) {
			errs = append(errs, fmt.Errorf("host %s is given twice", h.Name))
		}
	}
	return errors.Join(errs...)
}

// Ports that are chosen for machines whose kernel cannot be asked to choose one: of
// below the range from which the kernel takes those of outgoing connections.
const (
	lowestPort     = 20000
	highestPort    = 60000
	fewestPorts    = 2000
	usualEphemeral = 32768
)

// lastPort is where the search for ports goes on, so that no two deployments of a
// perflab are given the same before either listens. Each perflab begins elsewhere.
var lastPort = func() *atomic.Uint32 {
	var b [4]byte
	rand.Read(b[:]) // does not fail
	a := new(atomic.Uint32)
	a.Store(binary.NativeEndian.Uint32(b[:]))
	return a
}()

// freePorts chooses ports that do not appear as a local one in a machine's tables:
// ip_local_port_range, then net/tcp and net/tcp6 of its /proc.
func freePorts(tables []byte, n int) ([]int, error) {
	low, high := lowestPort, highestPort
	ephemeral := usualEphemeral
	for line := range bytes.Lines(tables) {
		if from, _, ok := proc.ParsePortRange(line); ok {
			ephemeral = from
		}
	}
	if ephemeral >= lowestPort+fewestPorts {
		high = min(high, ephemeral)
	}
	used := map[int]bool{}
	for s := range proc.Sockets(tables) {
		used[s.Port] = true
	}
	var ports []int
	for range high - low {
		if len(ports) == n {
			return ports, nil
		}
		p := low + int(lastPort.Add(1)%uint32(high-low))
		if !used[p] {
			ports = append(ports, p)
		}
	}
	return nil, fmt.Errorf("%d of %d ports from %d to %d are free", len(ports), n, low, high-1)
}
