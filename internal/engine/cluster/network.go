package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/redact"
)

// What NCCL (and RCCL, in the same words) prints under NCCL_DEBUG=INFO: the
// connections between machines, the network that it settled on, and the devices.
var (
	netVia    = regexp.MustCompile(`NCCL INFO .* via NET/([^/\n]+)(?:/\d+)?(\S*)`)
	netChosen = regexp.MustCompile(`NCCL INFO (?:.*: )?Using network (.+)`)
	netUsing  = regexp.MustCompile(`NCCL INFO NET/(IB|Socket) ?: Using (.*)`)
	netDevice = regexp.MustCompile(`\[\d+\]([^\s:;]+):([^\s;]*)`)
)

// Network tells from a log which network the collective library uses between
// machines, and whether it is the slow one: plain TCP sockets, over which figures of
// several machines say little about the machines. ok is false where the log does not
// tell, as without NCCL_DEBUG=INFO.
func Network(log string) (text string, slow, ok bool) {
	var chosen string
	var vias []string
	devices := map[string][]string{}
	roce, direct := false, false
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(redact.Plain(line))
		if !strings.Contains(line, "NCCL INFO") {
			continue
		}
		if m := netVia.FindStringSubmatch(line); m != nil {
			if !slices.Contains(vias, m[1]) {
				vias = append(vias, m[1])
			}
			direct = direct || strings.Contains(m[2], "GDRDMA")
		} else if m := netChosen.FindStringSubmatch(line); m != nil {
			chosen = m[1]
		} else if m := netUsing.FindStringSubmatch(line); m != nil {
			for _, d := range netDevice.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(devices[m[1]], d[1]) {
					devices[m[1]] = append(devices[m[1]], d[1])
				}
				roce = roce || strings.Contains(d[2], "RoCE")
			}
		}
	}
	kind := networkKind(chosen, vias, devices)
	switch {
	case kind == "":
		return "", false, false
	case kind == "Socket":
		return "plain TCP sockets" + on(devices["Socket"]), true, true
	case strings.HasPrefix(kind, "IB"):
		text = "InfiniBand"
		if roce {
			text = "RoCE"
		}
		text += on(devices["IB"])
	default:
		text = kind
	}
	if direct {
		text += ", GPUDirect RDMA"
	}
	return text, false, true
}

// networkKind is the network by the strongest sign: a connection through sockets
// where there is one, then any connection, then the choice, then the devices found.
func networkKind(chosen string, vias []string, devices map[string][]string) string {
	switch {
	case slices.Contains(vias, "Socket"):
		return "Socket"
	case len(vias) > 0 && strings.HasPrefix(chosen, vias[0]):
		return chosen
	case len(vias) > 0:
		return vias[0]
	case chosen != "":
		return strings.TrimSpace(chosen)
	case len(devices["IB"]) > 0:
		return "IB"
	case len(devices["Socket"]) > 0:
		return "Socket"
	}
	return ""
}

func on(devices []string) string {
	if len(devices) == 0 {
		return ""
	}
	return fmt.Sprintf(" on %s", strings.Join(devices, ", "))
}
