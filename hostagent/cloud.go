package hostagent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/agent/notice"
	gcphost "github.com/fray-ml/fray/providers/gcp/host"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

var _ notice.Source = gcphost.Notices{}

// RunCloud serves the host that this machine's metadata server names,
// unless args name it. Its status is reported to the cloud too: there is no other
// way to find out why a host does not come up.
func RunCloud(ctx context.Context, a *terminal.Terminal, args agent.Args) error {
	err := serveCloudHost(ctx, a, args)
	if err != nil && ctx.Err() == nil {
		reportStatus(ctx, a, "failed: "+err.Error())
	}
	return err
}

func serveCloudHost(ctx context.Context, a *terminal.Terminal, args agent.Args) error {
	if args.Slice == "" {
		var err error
		if args, err = cloudArgs(ctx, args); err != nil {
			return err
		}
	}
	// Programs that need a home find none under some service managers.
	if os.Getenv("HOME") == "" {
		if err := os.Setenv("HOME", args.Dir); err != nil {
			return fmt.Errorf("set HOME: %w", err)
		}
	}
	reportStatus(ctx, a, fmt.Sprintf("running: fray %s, host %d of %s", release.Version(), args.Host, args.Slice))
	return Run(ctx, a, args, agent.Config{Notices: gcphost.NewNotices(), RegistryToken: gcphost.RegistryToken})
}

// cloudArgs fills in what the metadata server knows.
func cloudArgs(ctx context.Context, args agent.Args) (agent.Args, error) {
	host, err := gcphost.Read(ctx)
	if err != nil {
		return args, err
	}
	s, err := stack.Location(host.Store).Open(ctx)
	if err != nil {
		return args, err
	}
	number, err := gcphost.Claim(ctx, s, host)
	if err != nil {
		return args, err
	}
	args.Store, args.Workspace, args.Slice = host.Store, host.Workspace, host.Spec.Name
	args.Host, args.Instance, args.Zone = number, host.Instance, host.Zone
	args.Address = cmp.Or(args.Address, host.Address)
	args.Simulated = args.Simulated || stack.Emulated() // an emulator has no TPUs
	args.TPUNode = host.IsOfTPUNode() && !args.Simulated
	return args, nil
}

// statusPatience bounds the telling of what is only for people.
const statusPatience = 3 * time.Second

func reportStatus(ctx context.Context, a *terminal.Terminal, status string) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	if err := gcphost.ReportStatus(ctx, status); err != nil {
		fmt.Fprintf(a.Stderr, "status not reported: %v\n", err)
	}
}
