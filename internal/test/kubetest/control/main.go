// Command kube-control is etcd, kube-apiserver, kube-controller-manager and kube-scheduler of one
// cluster for tests, each as a subcommand that takes the flags of the program of that name.
// It is a module of its own, so that perflab has none of their dependencies: make kube-control.
package main

import (
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = `usage: kube-control etcd DIR CLIENT-URL PEER-URL
       kube-control kube-apiserver|kube-controller-manager|kube-scheduler FLAGS
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	if name == "etcd" && len(os.Args) == 4 {
		fmt.Fprintln(os.Stderr, etcd(os.Args[1], os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
		"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	command, known := commands[name]
	if !known {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

// etcd serves until something goes wrong. It does not sync its files: nobody reads them again.
func etcd(dir, client, peer string) error {
	c := embed.NewConfig()
	for at, list := range map[string][]*[]url.URL{client: {&c.ListenClientUrls, &c.AdvertiseClientUrls}, peer: {&c.ListenPeerUrls, &c.AdvertisePeerUrls}} {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		for _, l := range list {
			*l = []url.URL{*u}
		}
	}
	c.Dir, c.LogLevel, c.UnsafeNoFsync = dir, "error", true
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	<-e.Server.ReadyNotify()
	fmt.Println("etcd ready")
	return <-e.Err()
}
