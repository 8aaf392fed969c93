package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/deploy/kube"
	"perflab/internal/lab"
	"perflab/internal/study"
)

const kubeLong = `Prepare a Kubernetes cluster for studies, and look after what they leave there.

A study of runtime kind kubernetes starts each engine as pods of a namespace, measures
it and removes it. It needs rights in that namespace alone:

  perflab kube role -n bench | kubectl apply -f -    who runs studies, and what they may
  perflab kube check STUDY.yaml                      would its engines start? nothing is started
  perflab tune STUDY.yaml                            the study
  perflab kube list -n bench                         what runs there now, and for whom
  perflab kube clean -n bench                        remove what a perflab that was killed left
  perflab kube agents 4 --image perflab:TAG          pods that send load from inside

docs/kubernetes.md goes from nothing to a study in five minutes.`

// clusterFlags say which cluster, and where in it.
type clusterFlags struct {
	kube.Settings
	asJSON bool
}

func (f *clusterFlags) add(fs *pflag.FlagSet) {
	f.addPlace(fs)
	fs.BoolVar(&f.asJSON, "json", false, "print JSON")
}

// addPlace adds those that say where.
func (f *clusterFlags) addPlace(fs *pflag.FlagSet) {
	fs.StringVarP(&f.Namespace, "namespace", "n", "", "namespace to look at (default that of the context, else default)")
	fs.StringVar(&f.Context, "context", "", "context of the kubeconfig (default the current one)")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "file with the cluster and the credentials (default KUBECONFIG, else ~/.kube/config, else the service account of this pod)")
}

// NewKube is perflab kube: what a cluster needs before studies, and what they left after them.
func NewKube(env console.Env) *cobra.Command {
	c := &cobra.Command{
		Use:     "kube",
		Short:   "Prepare a Kubernetes cluster for studies, and look after what they leave",
		Long:    kubeLong,
		Example: "  perflab kube role -n bench | kubectl apply -f -\n  perflab kube check study.yaml",
		Args:    console.WantArgs(0, "role, check, list, clean or agents"),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newKubeRole(env), newKubeCheck(env), newKubeList(env), newKubeClean(env), newKubeAgents(env))
	return c
}

func newKubeRole(env console.Env) *cobra.Command {
	namespace, uses := "", kube.Uses{}
	c := &cobra.Command{
		Use:   "role",
		Short: "Print the rights that studies need in a namespace, for kubectl apply",
		Long: `Print a ServiceAccount named perflab, a Role with what perflab uses in a namespace, and
the RoleBinding of both, as YAML. No right of it is of the cluster as a whole, and none
reads the value of a Secret.

With --service it is what perflab needs where it starts no engine and measures a Service
that others run: to look at the Service and its pods, and to forward a port to them. Apply
it in the namespace of the Service.

Whoever may make Roles applies it. A study then runs in a pod with that account, or as
it from elsewhere; a person's own account gets the same Role by a RoleBinding of its own.`,
		Example: "  perflab kube role --namespace bench | kubectl apply -f -",
		Args:    console.WantArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			s := kube.Settings{}
			s.Namespace = namespace
			if err := s.Pods.Validate(); err != nil {
				return console.Usage(err)
			}
			_, err := io.WriteString(env.Stdout, kube.Role(namespace, uses))
			return err
		},
	}
	c.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace in which studies start engines")
	c.Flags().BoolVar(&uses.Agents, "agents", false, "also the right to make Secrets, for the invitations of load agents in pods")
	c.Flags().BoolVar(&uses.Service, "service", false, "only what measuring a Service of others needs, which is to look at it; no engine can be started")
	return c
}

func newKubeCheck(env console.Env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "check STUDY.yaml",
		Short: "Say whether the engines of a study would start in its cluster",
		Long: `Look at the cluster of a study, and say what would keep its engines from starting, and
what to do about it: whether the API server answers, the namespace is there, the rights
suffice, LeaderWorkerSet and the queue are installed where the study needs them, claims
and Secrets are there, a node could hold a pod, and the cluster would accept the objects
(a dry run on the server, so that quotas, webhooks and policies are asked).

Of a study of an existing Service it says whether that is there, which pods are behind it
and how they and their metrics are reached, and what rights lack and cost.

Nothing is started and nothing is changed. perflab tune makes the same checks before its
first launch. Exit status 1 says that something is missing.`,
		Example: "  perflab kube check study.yaml",
		Args:    console.WantArgs(1, "one study file"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := clusterStudy(args[0])
			if err != nil {
				return console.Usage(err)
			}
			findings, err := lab.CheckCluster(c.Context(), s)
			if err != nil {
				return err
			}
			if err := showFindings(env.Stdout, findings, asJSON); err != nil {
				return err
			}
			n := len(slices.DeleteFunc(slices.Clone(findings), func(f kube.Finding) bool { return f.OK }))
			if n > 0 {
				if _, ok := s.ServiceTarget(); ok {
					return fmt.Errorf("the Service of %s cannot be measured: see the lines above without ok", args[0])
				}
				return fmt.Errorf("the engines of %s would not start: see the %s above", args[0], map[bool]string{true: "line", false: "lines"}[n == 1]+" without ok")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// clusterStudy reads a study of a cluster.
func clusterStudy(path string) (*study.Study, error) {
	source, err := study.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the study: %w", err)
	}
	s, err := study.Parse(path, source)
	if err != nil {
		return nil, err
	}
	if _, ok := s.ServiceTarget(); !ok && s.Runtime.Kind != study.Kubernetes {
		return nil, fmt.Errorf("%s has runtime kind %s, which uses no cluster: perflab kube check is for kind kubernetes, and for existing with a service", path, s.Runtime.Kind)
	}
	return s, nil
}

func showFindings(w io.Writer, all []kube.Finding, asJSON bool) error {
	if asJSON {
		return console.WriteJSON(w, all)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range all {
		state := "ok"
		if !f.OK {
			state = "NO"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", state, f.Check, f.Text)
		if f.Help != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", f.Help)
		}
	}
	return t.Flush()
}

func newKubeList(env console.Env) *cobra.Command {
	f := clusterFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "Show the deployments of perflab in a namespace",
		Long: `Show what perflab has started in a namespace: each deployment with who started it, how
long ago, and its pods. One whose perflab has not been heard of for a minute is stale:
the next start in the namespace removes it, and so does perflab kube clean.`,
		Example: "  perflab kube list -n bench",
		Args:    console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := kube.List(c.Context(), f.Settings)
			switch {
			case err != nil:
				return err
			case f.asJSON:
				return console.WriteJSON(env.Stdout, all)
			}
			return showOwned(env.Stdout, all, time.Now())
		},
	}
	f.add(c.Flags())
	return c
}

// showOwned prints deployments as a table.
func showOwned(w io.Writer, all []kube.Owned, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No deployment of perflab is in the namespace.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTATE\tAGE\tSTARTED BY\tPODS")
	for _, d := range all {
		state := "in use"
		if d.Stale {
			state = "stale"
		}
		var pods []string
		for _, p := range d.Pods {
			pods = append(pods, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Name, strings.ToLower(p.Phase), onNode(p.Node))))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", d.Name, state, now.Sub(d.Created).Round(time.Second), d.Holder, cmp.Or(strings.Join(pods, ", "), "none"))
	}
	return t.Flush()
}

func onNode(node string) string {
	if node == "" {
		return ""
	}
	return "on " + node
}

func newKubeClean(env console.Env) *cobra.Command {
	f := clusterFlags{}
	c := &cobra.Command{
		Use:   "clean [NAME...]",
		Short: "Remove what perflab left in a namespace",
		Long: `Remove deployments whose perflab was killed, with all their pods, and wait until these
are gone. Deployments that a perflab still uses stay, unless they are named: a study that
measures one then sees its engine die. Claims and Secrets are yours, and stay always.`,
		Example: "  perflab kube clean -n bench\n  perflab kube clean -n bench perflab-7kq2f",
		RunE: func(c *cobra.Command, args []string) error {
			ended, err := clean(c.Context(), f.Settings, args)
			if f.asJSON {
				return errors.Join(err, console.WriteJSON(env.Stdout, map[string][]string{"removed": ended}))
			}
			for _, name := range ended {
				fmt.Fprintf(env.Stdout, "removed %s\n", name)
			}
			if len(ended) == 0 && err == nil {
				fmt.Fprintln(env.Stdout, "Nothing to remove.")
			}
			return err
		},
	}
	f.add(c.Flags())
	return c
}

// clean removes deployments, and gives a list also where there are none.
func clean(ctx context.Context, s kube.Settings, names []string) ([]string, error) {
	ended, err := kube.Clean(ctx, s, names...)
	return append([]string{}, ended...), err
}
