package hostagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/agent/notice"
	gcphost "github.com/fray-ml/fray/providers/gcp/host"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

var _ notice.Source = gcphost.Notices{}

// RunCloud serves the host that this machine's metadata server names,
// unless args name it. Its status is reported to the cloud too, and to the store until the
// host reports there: there is no other way to find out why a host does not come up.
func RunCloud(ctx context.Context, a *terminal.Terminal, args agent.Args) error {
	c := &cloudHost{terminal: a}
	err := c.serve(ctx, args)
	if err != nil && ctx.Err() == nil {
		c.report(ctx, "failed: "+err.Error())
	}
	return err
}

// cloudHost is what is known of the machine. Its store is nil where args name the host.
type cloudHost struct {
	terminal *terminal.Terminal
	host     gcphost.Host
	store    store.Store
}

func (c *cloudHost) serve(ctx context.Context, args agent.Args) error {
	if args.Slice == "" {
		var err error
		if args, err = c.complete(ctx, args); err != nil {
			return err
		}
	}
	// Programs that need a home find none under some service managers.
	if os.Getenv("HOME") == "" {
		if err := os.Setenv("HOME", args.Dir); err != nil {
			return fmt.Errorf("set HOME: %w", err)
		}
	}
	running := fmt.Sprintf("running: fray %s, host %d of %s", release.Version(), args.Host, args.Slice)
	c.reportToCloud(ctx, running)
	base := agent.Config{Notices: gcphost.NewNotices(), RegistryToken: gcphost.RegistryToken}
	if c.store != nil {
		base.Store = c.reported(store.HostKey(args.Slice, args.Host), running)
	}
	return Run(ctx, c.terminal, args, base)
}

// reported is the store as the agent gets it. Once the host reports there, what else is
// known of the machine is of no interest.
func (c *cloudHost) reported(key, running string) store.Store {
	hidden := false // in the guest attribute, by a failure
	return &cloudStore{Store: c.store, key: key, notify: func(ctx context.Context, err error) bool {
		switch {
		case err != nil:
			hidden = true
			c.reportToCloud(ctx, "failed: reports do not get to "+c.store.Location()+": "+err.Error())
			return true
		case hidden:
			hidden = false
			c.reportToCloud(ctx, running)
		}
		return c.withdraw(ctx)
	}}
}

// complete fills in what the metadata server knows.
func (c *cloudHost) complete(ctx context.Context, args agent.Args) (agent.Args, error) {
	host, err := gcphost.Read(ctx)
	if err != nil {
		return args, err
	}
	s, err := stack.Location(host.Store).Open(ctx)
	if err != nil {
		return args, err
	}
	c.host, c.store = host, s
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

// report reports a status where the startup script does.
func (c *cloudHost) report(ctx context.Context, status string) {
	c.reportToCloud(ctx, status)
	if c.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	if _, err := c.store.Put(ctx, c.host.BootKeys()[0], []byte(status), store.Any); err != nil {
		fmt.Fprintf(c.terminal.Stderr, "status not reported: %v\n", err)
	}
}

// withdraw removes what the startup script, or an agent that failed, left in the store, and
// reports whether it could.
func (c *cloudHost) withdraw(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	var failed error
	for _, key := range c.host.BootKeys() {
		failed = errors.Join(failed, c.store.Delete(ctx, key))
	}
	if failed != nil {
		fmt.Fprintf(c.terminal.Stderr, "status not removed: %v\n", failed)
	}
	return failed == nil
}

func (c *cloudHost) reportToCloud(ctx context.Context, status string) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	if err := gcphost.ReportStatus(ctx, status); err != nil {
		fmt.Fprintf(c.terminal.Stderr, "status not reported: %v\n", err)
	}
}
