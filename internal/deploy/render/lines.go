package render

import (
	"fmt"
	"strings"

	"perflab/internal/engine"
)

// Line is one process of a plan as a shell takes it.
type Line struct {
	Replica int
	Name    string // among the processes of its replica: "rank-1"; "" for the one that serves
	Node    string // that it runs on; "" for this machine
	Files   string // here-documents that write the files which it reads
	Command string // with its environment, its devices and its ports
	Wait    string // what to wait for before the next is started; "" for nothing
}

// Lines are the processes of a plan in the order of their start, with the ports that Script
// gives them. A secret is a variable of the reader's environment, and so is an address that the
// plan does not know.
func Lines(p Plan) ([]Line, error) {
	all, err := p.processes(false)
	if err != nil {
		return nil, err
	}
	var out, routers []Line
	for i, list := range all {
		for _, q := range list {
			l := Line{Replica: i, Name: q.peer, Node: q.node}
			for _, f := range q.files {
				l.Files += engine.HereDocument(f.Name, f.Text)
			}
			var words []string
			for _, v := range q.visible() {
				words = append(words, v.name+"="+v.value.quoted(engine.Quote, addressVariable))
			}
			for _, w := range q.argv {
				words = append(words, w.quoted(engine.Quote, addressVariable))
			}
			l.Command = strings.Join(words, " ")
			switch {
			case q.once:
				l.Wait = "until it ends"
			case q.up != "":
				l.Wait = fmt.Sprintf("until it prints %q", q.up)
			case q.serves:
				l.Wait = fmt.Sprintf("until port %d answers", q.port)
			}
			if q.router { // when the engines of all replicas are ready
				routers = append(routers, l)
				continue
			}
			out = append(out, l)
		}
	}
	return append(out, routers...), nil
}

// addressVariable is the address of a machine by its variable, as a shell takes it.
func addressVariable(node string) string { return `"${` + AddressVariable(node) + `}"` }

// AddressVariable is the variable that stands for the address of a machine which a plan does not know.
func AddressVariable(node string) string {
	return "ADDR_" + strings.ToUpper(strings.Trim(notName.ReplaceAllString(node, "_"), "_"))
}
