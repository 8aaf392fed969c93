// Package render writes down what would be done to start a deployment, for sites
// that allow no direct start: a shell script, a compose file, a Slurm batch file,
// Kubernetes manifests.
//
//	text, err := render.Script(render.Plan{Name: "qwen3-32b", Spec: spec})
//
// Invariants. The text is a pure function of the plan. No secret of a command or an
// environment is in it: the reader's own environment (or Secret) is referred to
// instead. What it starts is what the runtimes start: the same processes in the same
// order, and the same check for readiness. Absent on purpose: downloads, node
// set-up, and restarts, over which no measurement would hold.
package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/redact"
)

// Plan is a deployment to write down, and what the site wants to know of it.
type Plan struct {
	Name     string         // of files and objects: lower-case letters, digits and dashes
	Comments []string       // lines for the head
	Spec     deploy.Spec    // Dir is not used
	Nodes    []cluster.Node // the machines that the members name; none: this one
	Port     int            // of the first replica; 0: 8000
	Bench    string         // the perflab bench command, with the address as http://HOST:PORT

	Image   string   // container image; needed by Compose and Kubernetes
	Router  string   // image of the router before engines in pools; "": Image
	Mounts  []Mount  // the same for every process; of Kubernetes see Pods
	Caches  []string // directories in the container that each replica keeps for itself
	ShmSize string   // of /dev/shm, as 32g; "": the host's own; of Kubernetes see Pods
	Ulimits []string // NAME=value, as memlock=-1

	Partition string // Slurm
	Account   string
	TimeLimit string // as 04:00:00

	Pods   Pods              // Kubernetes
	Labels map[string]string // Kubernetes: further ones of every object and pod
	Models string            // Kubernetes: path that answers 200 once models are listed, without which a pod is not ready; "": Health
	Ports  map[string]int    // of each replica, by the name in {port:NAME}, "" for {port}; those without one are chosen
	// Gated says that a runtime starts the manifests, and waits for what they start: there is no
	// Service, and the kubelet ends no engine for being late. Processes of a replica on one
	// node are containers of its pod, and each begins when its Gate appears.
	Gated bool
}

// Mount gives a directory of the machine to a container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// MissingError says that the plan lacks something or cannot be had in a format.
type MissingError struct{ Text string }

func (e *MissingError) Error() string { return e.Text }

func missing(format string, args ...any) error { return &MissingError{fmt.Sprintf(format, args...)} }

// kind is what a piece of a word stands for.
type kind int

const (
	literal kind = iota
	secret       // a variable of the reader's environment
	file         // the path of a file of the process
	address      // of a node
)

// piece is a part of a word; text is the literal, or the name of what it stands for.
type piece struct {
	kind kind
	text string
}

// word is one argument, or one value of the environment.
type word []piece

// quoted is the word as a shell takes it, with what stands there for a file and for the
// address of a machine.
func (w word) quoted(fileAt, addressOf func(name string) string) string {
	if len(w) == 0 {
		return "''"
	}
	var b strings.Builder
	for _, p := range w {
		switch p.kind {
		case literal:
			b.WriteString(engine.Quote(p.text))
		case secret:
			fmt.Fprintf(&b, `"${%s}"`, p.text)
		case file:
			b.WriteString(fileAt(p.text))
		case address:
			b.WriteString(addressOf(p.text))
		}
	}
	return b.String()
}

// variable is an entry of the environment.
type variable struct {
	name  string
	value word
}

// process is one process as it would be started, ports filled in.
type process struct {
	name    string // "replica-0", "replica-0.rank-1"
	node    string
	argv    []word
	env     []variable
	devices []string
	show    string // variable that names them
	files   []deploy.File
	peer    string // its name among the processes of its replica, "" for the front process
	up      string
	once    bool
	serves  bool // engine behind a router
	front   bool
	router  bool // front process behind which engines serve
	port    int  // that it serves on, of a front process and of an engine behind one
}

var planName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,46}[a-z0-9])?$`)

// processes are those of each replica in the order of their start, the serving one
// last.
func (p Plan) processes(samePorts bool) ([][]process, error) {
	if !planName.MatchString(p.Name) {
		return nil, missing("the name %q is no name for files and services: use lower-case letters, digits and dashes", p.Name)
	}
	s := p.Spec
	s.Dir = cmp.Or(s.Dir, ".")
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("render %s: %w", p.Name, err)
	}
	var out [][]process
	named := map[string]string{}
	for i, r := range s.Replicas {
		ports := p.portsOf(i, r, samePorts)
		name := fmt.Sprintf("replica-%d", i)
		var list []process
		for _, peer := range r.Peers {
			q, err := p.process(name+"."+peer.Name, peer.Member, ports, named)
			if err != nil {
				return nil, err
			}
			q.peer, q.up, q.once, q.serves = peer.Name, peer.Up, peer.Once, peer.Serves != ""
			if q.serves {
				q.port = ports.of(peer.Serves)
			}
			list = append(list, q)
		}
		q, err := p.process(name, r.Member, ports, named)
		if err != nil {
			return nil, err
		}
		q.front, q.router, q.port = true, served(r), ports.serving
		out = append(out, append(list, q))
	}
	return out, nil
}

// process is a member of a replica; named are the secrets of all processes by their variables.
func (p Plan) process(name string, m deploy.Member, ports *ports, named map[string]string) (process, error) {
	q := process{name: name, node: m.Node, devices: m.Devices, show: cmp.Or(p.Spec.Visible, "CUDA_VISIBLE_DEVICES")}
	if m.Node != "" && p.node(m.Node) < 0 {
		return q, missing("%s runs on %q, which is none of the nodes", name, m.Node)
	}
	shownArgv, shownEnv := redact.Argv(m.Argv), redact.Env(m.Env)
	for i, arg := range m.Argv {
		variable := ""
		if shownArgv[i] != arg {
			first := secretName(shownArgv[:i+1])
			variable = first
			for n := 2; named[variable] != "" && named[variable] != arg; n++ {
				variable = fmt.Sprintf("%s_%d", first, n)
			}
			named[variable] = arg
		}
		q.argv = append(q.argv, wordOf(shownArgv[i], variable, ports))
	}
	for i, kv := range shownEnv {
		key, value, _ := strings.Cut(kv, "=")
		if kv != m.Env[i] { // the reader's own, as a whole: a proxy's URL has its password within
			q.env = append(q.env, variable{key, word{{secret, key}}})
			continue
		}
		q.env = append(q.env, variable{key, wordOf(value, "", ports)})
	}
	for _, f := range m.Files {
		var b strings.Builder
		for _, piece := range wordOf(redact.Text(f.Text), "", ports) {
			if piece.kind != literal {
				return q, missing("the file %s refers to an address or another file, which only a running deployment knows", f.Name)
			}
			b.WriteString(piece.text)
		}
		q.files = append(q.files, deploy.File{Name: f.Name, Text: b.String()})
	}
	return q, nil
}

// node is the place of a node in the plan, -1 for none.
func (p Plan) node(name string) int {
	return slices.IndexFunc(p.Nodes, func(n cluster.Node) bool { return n.Name == name })
}

var (
	notName = regexp.MustCompile(`[^A-Za-z0-9]+`)
	setFlag = regexp.MustCompile(`^(-{1,2}[A-Za-z][\w.-]*|[A-Za-z_]\w*)=`)
)

// secretName is the variable that holds the last of these words: after its flag, as
// API_KEY for --api-key. The words are those that may be shown.
func secretName(shown []string) string {
	last := shown[len(shown)-1]
	name := ""
	if m := setFlag.FindStringSubmatch(last); m != nil {
		name = m[1]
	}
	for i := len(shown) - 1; i >= 0 && name == ""; i-- {
		if strings.HasPrefix(shown[i], "-") {
			name = shown[i]
		}
	}
	name = strings.ToUpper(strings.Trim(notName.ReplaceAllString(name, "_"), "_"))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "SECRET"
	}
	return name
}

// Addr stands in a node's address for one that is known only where it runs, as in a
// Slurm job or a pod.
func Addr(node string) string { return "{addr:" + node + "}" }

var marks = regexp.MustCompile(`\{port\}|\{host\}|\{(port|file|addr):([^{}]+)\}|` + regexp.QuoteMeta(redact.Mark))

// wordOf takes a text apart, ports filled in. variable is the reader's, that stands for
// what is redacted; "" keeps it redacted.
func wordOf(text, variable string, ports *ports) word {
	var out word
	add := func(k kind, s string) {
		switch {
		case k == literal && s == "":
		case k == literal && len(out) > 0 && out[len(out)-1].kind == literal:
			out[len(out)-1].text += s
		default:
			out = append(out, piece{k, s})
		}
	}
	from := 0
	for _, m := range marks.FindAllStringSubmatchIndex(text, -1) {
		add(literal, text[from:m[0]])
		from = m[1]
		kinds := map[string]kind{"file": file, "addr": address}
		switch {
		case text[m[0]:m[1]] == "{host}":
			add(literal, "0.0.0.0")
		case m[2] < 0 && text[m[0]:m[1]] != redact.Mark:
			add(literal, strconv.Itoa(ports.serving))
		case m[2] < 0 && variable != "":
			add(secret, variable)
		case m[2] < 0:
			add(literal, redact.Mark)
		case text[m[2]:m[3]] == "port":
			add(literal, strconv.Itoa(ports.of(text[m[4]:m[5]])))
		default:
			add(kinds[text[m[2]:m[3]]], text[m[4]:m[5]])
		}
	}
	add(literal, text[from:])
	return out
}

// ports gives each name of a replica a port.
type ports struct {
	serving int
	named   int // the next one
	step    int
	same    bool
	byName  map[string]int
}

// Named ports begin where neither engines nor ephemeral ports usually are.
const (
	firstNamed = 20000
	perReplica = 20
	perEngine  = 16 // from one port to the next behind a router: vLLM 0.11.0 takes those after its own too, one a rank
)

// portsOf are those of a replica: where processes have machines of their own, the same for
// each replica.
func (p Plan) portsOf(replica int, r deploy.Replica, same bool) *ports {
	out := &ports{serving: cmp.Or(p.Ports[""], p.Port, 8000), named: firstNamed, step: 1, same: same && !p.Gated, byName: map[string]int{}}
	maps.Copy(out.byName, p.Ports)
	per := perReplica
	if served(r) {
		out.step, per = perEngine, perEngine*(2*len(r.Peers)+1)
	}
	if !same {
		out.serving, out.named = out.serving+replica, out.named+replica*per
	}
	return out
}

// served reports whether a router stands before engines of the replica.
func served(r deploy.Replica) bool {
	return slices.ContainsFunc(r.Peers, func(p deploy.Peer) bool { return p.Serves != "" })
}

var ordinal = regexp.MustCompile(`-\d+`)

// pool is what engines of a pool are named alike: decode of decode-0.
func pool(name string) string { return ordinal.ReplaceAllString(name, "") }

func (p *ports) of(name string) int {
	if p.same {
		name = pool(name)
	}
	if _, ok := p.byName[name]; !ok {
		p.byName[name] = p.named
		p.named += p.step
	}
	return p.byName[name]
}

// secrets are the variables that processes need from the reader, sorted.
func secrets(all [][]process) []string {
	var out []string
	for _, list := range all {
		for _, q := range list {
			words := slices.Clone(q.argv)
			for _, v := range q.env {
				words = append(words, v.value)
			}
			for _, w := range words {
				for _, piece := range w {
					if piece.kind == secret && !slices.Contains(out, piece.text) {
						out = append(out, piece.text)
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// visible is the environment of a process with the devices that it may see, for
// places that do not hide the others themselves.
func (q process) visible() []variable {
	if q.devices == nil || slices.ContainsFunc(q.env, func(v variable) bool { return v.name == q.show }) {
		return q.env
	}
	return append(slices.Clone(q.env), variable{q.show, word{{literal, strings.Join(q.devices, ",")}}})
}

// head is the comment lines of a file.
func (p Plan) head(more ...string) string {
	var b strings.Builder
	if len(p.Comments) == 0 && len(more) > 0 && more[0] == "" {
		more = more[1:]
	}
	for _, line := range slices.Concat(p.Comments, more) {
		for part := range strings.SplitSeq(strings.TrimRight(redact.Text(line), "\n"), "\n") {
			b.WriteString(strings.TrimRight("# "+part, " ") + "\n")
		}
	}
	return b.String()
}

// bench is the command that measures, at these addresses.
func (p Plan) bench(urls ...string) string {
	return strings.ReplaceAll(redact.Text(p.Bench), "http://HOST:PORT", strings.Join(urls, ","))
}

// health is the path that answers 200 when ready.
func (p Plan) health() string { return cmp.Or(p.Spec.Health, "/health") }

// timeoutS is how long every replica has to become ready, in seconds.
func (p Plan) timeoutS() int { return max(1, int(cmp.Or(p.Spec.Timeout.Seconds(), 900))) }

// imageFor is the image of a process.
func (p Plan) imageFor(q process) string {
	if q.router {
		return cmp.Or(p.Router, p.Image)
	}
	return p.Image
}

// cachesOf are the directories that a process keeps for itself: a router compiles nothing.
func (p Plan) cachesOf(q process) []string {
	if q.router {
		return nil
	}
	return p.Caches
}

// ownImage reports whether the router runs in another image than the engines.
func (p Plan) ownImage() bool { return p.Router != "" && p.Router != p.Image }

// alone checks that no replica spans machines, for formats of one.
func (p Plan) alone(format, instead string) error {
	for _, r := range p.Spec.Replicas {
		if slices.ContainsFunc(r.Peers, func(p deploy.Peer) bool { return p.Serves == "" }) || slices.Contains(r.Argv, cluster.MPILauncher) {
			return missing("a %s describes one machine, and a replica here spans several: use %s", format, instead)
		}
	}
	if len(p.Nodes) > 1 {
		return missing("a %s describes one machine, and there are %d: use %s", format, len(p.Nodes), instead)
	}
	return nil
}

var errImage = errors.New("name the container image: the engine runs in one here")
