package measure

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/deploy/kube"
	"perflab/internal/lab"
)

// kubeFlags name a Service of a cluster that is measured.
type kubeFlags struct {
	service, context string
	target           kube.Service
	found            *lab.Service // nil: the target is no Service
}

// kubeFlagNames are the flags of a Service.
const kubeFlagNames = "kube-service kube-context"

func (f *kubeFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.service, "kube-service", "", "Service of a Kubernetes cluster, NAMESPACE/NAME[:PORT]: it is the target, unless --base-url names a gateway before it; its pods are kept with the run, their metrics are read, and the run ends when one is replaced")
	fs.StringVar(&f.context, "kube-context", "", "context of the kubeconfig by which --kube-service is found (default the current one of KUBECONFIG, else of ~/.kube/config, else the service account of this pod)")
}

// given reports whether a Service is measured.
func (f *kubeFlags) given() bool { return f.service != "" }

// complete checks what is said of the Service.
func (f *kubeFlags) complete(fs *pflag.FlagSet, baseURLs []string) (err error) {
	switch {
	case fs.Changed("kube-context") && !f.given():
		return errors.New("--kube-context says where a Service is found: name it by --kube-service")
	case !f.given() && fs.Changed("kube-service"):
		return errors.New("--kube-service is empty: write NAMESPACE/NAME, or NAMESPACE/NAME:PORT")
	case !f.given():
		return nil
	case fs.Changed("host") || fs.Changed("port"):
		return errors.New("--host and --port do not apply with --kube-service: write its port as NAMESPACE/NAME:PORT, and the address of a gateway before it as --base-url")
	}
	f.target = kube.Service{Settings: kube.Settings{Context: f.context}, URLs: baseURLs}
	if f.target.Name, f.target.Port, err = kube.SplitService(f.service); err != nil {
		return fmt.Errorf("--kube-service: %w", err)
	}
	return nil
}

// serviceHost stands for the address of a Service that has not been found yet.
const serviceHost = "the-service"

// tell tells a run of the Service's pods.
func (f *kubeFlags) tell(b *bench.Runner) {
	if f.found != nil {
		b.Service, b.Pods, b.Meters = f.found.Header, f.found.Pods, f.found.Meters
	}
}

// findService finds the Service, where one is measured, and makes it the target. The context that it gives ends when its pods change;
// stop gives up what was opened.
func (f *benchFlags) findService(ctx context.Context, env console.Env) (_ context.Context, stop func(), err error) {
	k := &f.kube
	if !k.given() {
		return ctx, func() {}, nil
	}
	k.target.Progress = func(text string) { fmt.Fprintf(env.Stderr, "perflab: %s\n", text) }
	if k.found, err = lab.FindService(ctx, &k.target); err != nil {
		return ctx, nil, err
	}
	f.spec.Targets = k.found.Targets()
	watched, unwatch := k.found.Watched(ctx)
	return watched, func() {
		unwatch()
		_ = k.found.Stop(ctx) // it never fails
	}, nil
}
