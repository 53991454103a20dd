/** Source text that no module holds: the pieces between the published modules and the parts we make of them. */

/** All programs of Kubernetes in one, chosen by the name it is called by: one link of 150 MB instead of seven. */
export const KUBERNETES_MAIN = `package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var daemons = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if daemon, ok := daemons[name]; ok {
		os.Exit(cli.Run(daemon()))
	}
	var err error
	switch name {
	case "kubeadm":
		err = kubeadm.Run()
	case "kubectl":
		logs.GlogSetter("0")
		err = cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand())
	default:
		err = fmt.Errorf("%s: call me by the name of a program of Kubernetes", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`;

/** Holds a pod's namespaces and reaps what is left to it. */
export const PAUSE_C = `#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) { (void)signal; _exit(0); }
static void reap(int signal) { (void)signal; while (waitpid(-1, NULL, WNOHANG) > 0); }

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) return puts("pause " VERSION) < 0;
  struct sigaction ends = {.sa_handler = end}, reaps = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  if (sigaction(SIGINT, &ends, NULL) || sigaction(SIGTERM, &ends, NULL) || sigaction(SIGCHLD, &reaps, NULL)) return 1;
  for (;;) pause();
}
`;

const VPC_FIELDS: Record<string, string> = {
  Filter: "Name *string; Values []*string",
  Route: "DestinationCidrBlock, GatewayId, GatewayType, RouteType *string; Enabled *bool; RouteId *uint64",
  RouteTable: "RouteTableId *string; RouteSet []*Route",
  DescribeRouteTablesRequest: "Filters []*Filter",
  DescribeRouteTablesResponse: "Response *struct { RouteTableSet []*RouteTable }",
  DeleteRoutesRequest: "RouteTableId *string; Routes []*Route",
  CreateRoutesRequest: "RouteTableId *string; Routes []*Route",
  Client: "",
};

const VPC_CALLS: Record<string, string> = {
  DescribeRouteTables: "*DescribeRouteTablesResponse",
  DeleteRoutes: "any",
  CreateRoutes: "any",
};

/** Stands in for a cloud's SDK that flannel names, a lab never calls, and the Go proxy does not have. */
export const VPC_STUB = [
  `package v20170312`,
  `import "errors"`,
  `var errLeftOut = errors.New("this cloud is left out of the build")`,
  ...Object.entries(VPC_FIELDS).map(([name, fields]) => `type ${name} struct { ${fields} }`),
  `func NewClientWithSecretId(id, secret, region string) (*Client, error) { return nil, errLeftOut }`,
  ...Object.entries(VPC_CALLS).flatMap(([name, answer]) => [
    `func New${name}Request() *${name}Request { return &${name}Request{} }`,
    `func (*Client) ${name}(*${name}Request) (${answer}, error) { return nil, errLeftOut }`,
  ]),
  ``,
].join("\n");
