package deploy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/engine/cluster"
	"perflab/internal/proc"
	"perflab/internal/redact"
)

// Preflight is what must hold on the nodes of a replica that spans several before it
// is worth starting. An empty field is not checked.
type Preflight struct {
	Name    string         // of the deployment, for messages
	Nodes   []cluster.Node // the first is the one that serves
	Version []string       // prints the engine's version: vllm --version
	// Read finds the version in what Version prints (engine.Engine.ParseVersion); nil: its
	// last word.
	Read  func(text string) (version string, ok bool)
	Model string // checked where it is a path: the same files of the same sizes on each node
	Ports []int  // that nothing may listen on
}

// Names of checks.
const (
	CheckVersion   = "version"
	CheckModel     = "model"
	CheckPorts     = "ports"
	CheckInterface = "interface"
	CheckNetwork   = "network"
)

// Finding is what one check found on one node.
type Finding struct {
	Node  string `json:"node"`
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"` // one sentence, without secrets
}

// Run makes every check on every node. Findings stand in the order of the nodes, and
// those that are not OK are one *InfraError. What could not be looked at is not OK.
func (p Preflight) Run(ctx context.Context, c Commander) ([]Finding, error) {
	facts := make([]nodeFindings, len(p.Nodes))
	var wg sync.WaitGroup
	for i, n := range p.Nodes {
		wg.Go(func() { facts[i] = p.look(ctx, c, n) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("check the nodes of %s: %w", p.name(), err)
	}
	var out []Finding
	for i, n := range p.Nodes {
		for _, f := range facts[i].findings {
			f.Node = n.Name
			out = append(out, f)
		}
		if i > 0 {
			out = append(out, p.alike(n.Name, facts[0], facts[i])...)
		}
	}
	return out, p.judge(out)
}

func (p Preflight) name() string { return Spec{Name: p.Name}.name() }

// judge makes an error of the findings that are not OK.
func (p Preflight) judge(findings []Finding) error {
	var bad []string
	for _, f := range findings {
		if !f.OK {
			bad = append(bad, f.Text)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return &InfraError{
		Op:   "check the nodes of " + p.name(),
		Err:  errors.New(strings.Join(bad, "; ")),
		Help: "mend what is named, or take the node out of the inventory",
	}
}

// nodeFindings is what one node says: findings of its own, and what is compared with the
// first node's.
type nodeFindings struct {
	findings []Finding
	version  string
	model    map[string]string // file -> size; nil: not known
}

func (f *nodeFindings) add(check string, ok bool, format string, args ...any) {
	f.findings = append(f.findings, Finding{Check: check, OK: ok, Text: redact.Text(fmt.Sprintf(format, args...))})
}

// look asks one node for everything.
func (p Preflight) look(ctx context.Context, c Commander, n cluster.Node) nodeFindings {
	var f nodeFindings
	node := n.Name
	n.Name = cmp.Or(n.Name, "this machine") // for sentences
	ask := func(argv ...string) (string, error) {
		var out bytes.Buffer
		err := c.Command(ctx, node, argv, &out)
		return out.String(), err
	}
	if len(p.Version) > 0 {
		p.version(&f, n, ask)
	}
	if IsPath(p.Model) {
		p.model(&f, n, ask)
	}
	if len(p.Ports) > 0 {
		p.ports(&f, n, ask)
	}
	if n.Interface != "" {
		checkInterface(&f, n, ask)
	}
	return f
}

type runFunc func(argv ...string) (string, error)

// IsPath tells a model's path from a repository's name.
func IsPath(model string) bool {
	return strings.HasPrefix(model, "/") || strings.HasPrefix(model, "./") || strings.HasPrefix(model, "../") || strings.HasPrefix(model, "~/")
}

func (p Preflight) version(f *nodeFindings, n cluster.Node, ask runFunc) {
	out, err := ask(p.Version...)
	f.version = p.read(out)
	switch {
	case err != nil:
		f.add(CheckVersion, false, "the engine's version on %s cannot be read: %v", n.Name, err)
	case f.version == "":
		f.add(CheckVersion, false, "%s prints no version on %s", strings.Join(p.Version, " "), n.Name)
	default:
		f.add(CheckVersion, true, "%s has version %s", n.Name, f.version)
	}
}

// read finds the version in what --version prints: engines log warnings before it.
func (p Preflight) read(out string) string {
	if p.Read != nil {
		version, _ := p.Read(out)
		return version
	}
	words := strings.Fields(out)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// listModel lists files with their sizes, by what POSIX has; hidden ones are caches of
// downloads.
const listModel = `case $1 in "~/"*) set -- "$HOME/${1#??}" ;; esac
if [ -d "$1" ]; then cd "$1" && find -L . -name '.?*' -prune -o -type f -exec ls -lnL {} +; else ls -lnL "$1"; fi`

// listedFile is a line of ls -ln: mode, links, owner, group, size, three words of date, name.
var listedFile = regexp.MustCompile(`^-\S+\s+\d+\s+\d+\s+\d+\s+(\d+)\s+\S+\s+\S+\s+\S+\s+(.+)$`)

func (p Preflight) model(f *nodeFindings, n cluster.Node, ask runFunc) {
	out, err := ask("sh", "-c", listModel, "sh", p.Model)
	if err != nil {
		f.add(CheckModel, false, "the model %s cannot be read on %s: %v", p.Model, n.Name, err)
		return
	}
	files := map[string]string{}
	for line := range strings.Lines(out) {
		if m := listedFile.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			files[strings.TrimPrefix(m[2], "./")] = m[1]
		}
	}
	if len(files) == 0 {
		f.add(CheckModel, false, "the model %s has no files on %s", p.Model, n.Name)
		return
	}
	f.model = files
	f.add(CheckModel, true, "the model has %d files on %s", len(files), n.Name)
}

// ports reads the kernel's table of sockets, which needs no program but cat.
func (p Preflight) ports(f *nodeFindings, n cluster.Node, ask runFunc) {
	out, err := ask("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || cat /proc/net/tcp")
	if err != nil {
		f.add(CheckPorts, false, "the ports in use on %s cannot be read: %v", n.Name, err)
		return
	}
	listened := map[int]bool{}
	for s := range proc.Sockets([]byte(out)) {
		if s.Listens {
			listened[s.Port] = true
		}
	}
	var bad []string
	for _, port := range p.Ports {
		if listened[port] {
			bad = append(bad, strconv.Itoa(port))
		}
	}
	if len(bad) > 0 {
		f.add(CheckPorts, false, "port %s of %s is in use: end what listens there, or choose another", strings.Join(bad, ", "), n.Name)
		return
	}
	f.add(CheckPorts, true, "the ports are free on %s", n.Name)
}

func checkInterface(f *nodeFindings, n cluster.Node, ask runFunc) {
	out, err := ask("ip", "-o", "addr", "show", "dev", n.Interface)
	if _, gone := errors.AsType[*ExitError](err); gone {
		f.add(CheckInterface, false, "%s has no network interface %s", n.Name, n.Interface)
		return
	}
	if err != nil {
		f.add(CheckInterface, false, "the interface %s of %s cannot be looked at (%v): install iproute2 there, or name no interface", n.Interface, n.Name, err)
		return
	}
	var have []string
	for _, m := range ipAddr.FindAllStringSubmatch(out, -1) {
		have = append(have, m[1])
	}
	if numeric.MatchString(n.Addr) && !slices.Contains(have, n.Addr) {
		f.add(CheckInterface, false, "the interface %s of %s has not the address %s but %s", n.Interface, n.Name, n.Addr, cmp.Or(strings.Join(have, ", "), "none"))
		return
	}
	f.add(CheckInterface, true, "the interface %s of %s has %s", n.Interface, n.Name, cmp.Or(strings.Join(have, ", "), "no address"))
}

var (
	ipAddr  = regexp.MustCompile(`\binet6? ([0-9A-Fa-f.:]+)`)
	numeric = regexp.MustCompile(`^(?:\d+\.\d+\.\d+\.\d+|[0-9A-Fa-f]*:[0-9A-Fa-f:]+)$`) // a name is resolved elsewhere
)

// alike compares a node with the first.
func (p Preflight) alike(node string, first, this nodeFindings) []Finding {
	var out []Finding
	if first.version != "" && this.version != "" && first.version != this.version {
		out = append(out, Finding{node, CheckVersion, false, fmt.Sprintf("%s has version %s of the engine and %s version %s: install the same on both",
			p.Nodes[0].Name, first.version, node, this.version)})
	}
	if first.model == nil || this.model == nil {
		return out
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(union(first.model, this.model))) {
		if first.model[name] != this.model[name] {
			differ = append(differ, name)
		}
	}
	if n := len(differ); n > 0 {
		shown := strings.Join(differ[:min(n, 3)], ", ")
		if n > 3 {
			shown += fmt.Sprintf(" and %d more", n-3)
		}
		out = append(out, Finding{node, CheckModel, false, fmt.Sprintf("the model %s differs between %s and %s: %s", p.Model, p.Nodes[0].Name, node, shown)})
	}
	return out
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// Network is the finding on the network that the collective library took, from the
// log of a process that has started; false where the log does not tell. Figures over
// plain sockets are of the sockets, so they are a finding that is not OK.
func Network(node, log string) (Finding, bool) {
	text, slow, ok := cluster.Network(log)
	if !ok {
		return Finding{}, false
	}
	f := Finding{Node: node, Check: CheckNetwork, OK: !slow, Text: fmt.Sprintf("NCCL runs over %s on %s", text, node)}
	if slow {
		f.Text = fmt.Sprintf("NCCL runs over plain sockets on %s (%s): figures are of that network; name the fast one's interface and adapters in the inventory, and give containers /dev/infiniband", node, text)
	}
	return f, true
}
