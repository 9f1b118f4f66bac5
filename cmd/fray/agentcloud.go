package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/providers/gcp"
)

var _ agent.Notices = gcp.Notices{}

// runCloudAgent serves the host that this machine's metadata server says it is,
// unless args say so. How it stands is told to the cloud too: whoever wonders
// why a host does not come up has no other way to look inside.
func (a *app) runCloudAgent(ctx context.Context, args agent.Args) error {
	err := a.serveCloudHost(ctx, args)
	if err != nil && ctx.Err() == nil {
		a.reportStatus(ctx, "failed: "+err.Error())
	}
	return err
}

func (a *app) serveCloudHost(ctx context.Context, args agent.Args) error {
	if args.Slice == "" {
		var err error
		if args, err = cloudArgs(ctx, args); err != nil {
			return err
		}
	}
	// Programs that look for a home find none under some service managers.
	if os.Getenv("HOME") == "" {
		if err := os.Setenv("HOME", args.Dir); err != nil {
			return fmt.Errorf("set HOME: %w", err)
		}
	}
	a.reportStatus(ctx, fmt.Sprintf("running: fray %s, host %d of %s", toolVersion(), args.Host, args.Slice))
	return a.runAgent(ctx, args, agent.Config{Notices: gcp.NewNotices(), RegistryToken: gcp.RegistryToken})
}

// cloudArgs fills in what the metadata server knows.
func cloudArgs(ctx context.Context, args agent.Args) (agent.Args, error) {
	host, err := gcp.ReadHost(ctx)
	if err != nil {
		return args, err
	}
	s, err := location(host.Store).open(ctx)
	if err != nil {
		return args, err
	}
	number, err := gcp.ClaimHost(ctx, s, host)
	if err != nil {
		return args, err
	}
	args.Store, args.Workspace, args.Slice = host.Store, host.Workspace, host.Spec.Name
	args.Host, args.Instance, args.Zone = number, host.Instance, host.Zone
	args.Address = cmp.Or(args.Address, host.Address)
	args.Simulated = args.Simulated || os.Getenv(endpointVariable) != "" // an emulator has no TPUs
	return args, nil
}

// statusPatience bounds the telling of what is only for people.
const statusPatience = 3 * time.Second

func (a *app) reportStatus(ctx context.Context, status string) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	if err := gcp.ReportStatus(ctx, status); err != nil {
		fmt.Fprintf(a.stderr, "status not reported: %v\n", err)
	}
}
