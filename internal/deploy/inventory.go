package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/hardware"
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
