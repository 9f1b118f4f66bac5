package gce

import (
	"context"
	"errors"
	"sync"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"google.golang.org/api/option"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Engine makes slices of Compute Engine machines. A slice of one host is an instance
// of its name. A slice of several is a managed instance group of its name, with
// an instance template and, with TPUs, a workload policy:
//
//	created   template, policy, group, for flex-start a resize request
//	deleted   group, policy, template
//
// So a slice whose creation or deletion was cut short anywhere always has a
// template, by which it is listed, and which says whose it is.
type Engine struct {
	clients computeClients
	project string
	now     func() time.Time

	reader engine.Reader
	specs  mark.Specs

	mu    sync.Mutex
	notes map[string]*note // by slice
}

// note is what is known of a slice's progress that the cloud does not show.
// All of it may be lost: then the slice looks unfinished, and is finished or
// deleted by the process that lists it.
type note struct {
	stack     string
	zone      string
	askedAt   time.Time // when the making of its group was last asked about, zero when that is over
	deletedAt time.Time // when its deletion was last asked for, zero unless it was
	deleteID  string    // of the requests for that
	failed    error     // why the making of its group ended
	complete  bool      // all its machines were up
	absent    int       // listings in a row that missed some of them
	lookedAt  time.Time // when its group was last asked for its errors
	problem   error     // the last of them, nil for none
	resized   bool      // its resize request is known to be there
	served    bool      // and to have been fulfilled
}

// computeClients are the parts of Compute Engine's API that slices need.
type computeClients struct {
	instances *compute.InstancesClient
	groups    *compute.InstanceGroupManagersClient
	resizes   *compute.InstanceGroupManagerResizeRequestsClient
	templates *compute.InstanceTemplatesClient
	policies  *compute.ResourcePoliciesClient
	global    *compute.GlobalOperationsClient
	region    *compute.RegionOperationsClient
	zone      *compute.ZoneOperationsClient
}

// New finds the credentials, and makes no call.
func New(ctx context.Context, config engine.Config) (*Engine, error) {
	clients, err := dialCompute(ctx, computeOptions(config.Endpoint))
	if err != nil {
		return nil, errors.Join(err, clients.close())
	}
	return &Engine{clients: clients, project: config.Project, now: config.Now, reader: engine.Reader{Backoff: config.Backoff}, notes: map[string]*note{}}, nil
}

// NewInstances is newGCE for listing instances only.
func NewInstances(ctx context.Context, config engine.Config) (*Engine, error) {
	instances, err := compute.NewInstancesRESTClient(ctx, computeOptions(config.Endpoint)...)
	if err != nil {
		return nil, err
	}
	*instances.CallOptions = compute.InstancesCallOptions{}
	return &Engine{clients: computeClients{instances: instances}, project: config.Project, reader: engine.Reader{Backoff: config.Backoff}}, nil
}

// computeOptions lead to the service, or to what stands in for it.
func computeOptions(endpoint string) []option.ClientOption {
	if endpoint == "" {
		return nil
	}
	return []option.ClientOption{option.WithEndpoint(endpoint), option.WithoutAuthentication()}
}

// dialCompute makes the clients, without their own retries, which go on for
// minutes: the caller of a provider decides about those. The options are emptied
// where they are, for the clients keep them in a second place.
func dialCompute(ctx context.Context, options []option.ClientOption) (c computeClients, err error) {
	if c.instances, err = compute.NewInstancesRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.instances.CallOptions = compute.InstancesCallOptions{}
	if c.groups, err = compute.NewInstanceGroupManagersRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.groups.CallOptions = compute.InstanceGroupManagersCallOptions{}
	if c.resizes, err = compute.NewInstanceGroupManagerResizeRequestsRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.resizes.CallOptions = compute.InstanceGroupManagerResizeRequestsCallOptions{}
	if c.templates, err = compute.NewInstanceTemplatesRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.templates.CallOptions = compute.InstanceTemplatesCallOptions{}
	if c.policies, err = compute.NewResourcePoliciesRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.policies.CallOptions = compute.ResourcePoliciesCallOptions{}
	if c.global, err = compute.NewGlobalOperationsRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.global.CallOptions = compute.GlobalOperationsCallOptions{}
	if c.region, err = compute.NewRegionOperationsRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.region.CallOptions = compute.RegionOperationsCallOptions{}
	if c.zone, err = compute.NewZoneOperationsRESTClient(ctx, options...); err != nil {
		return c, err
	}
	*c.zone.CallOptions = compute.ZoneOperationsCallOptions{}
	return c, nil
}

// Close ends the connections.
func (g *Engine) Close() error { return g.clients.close() }

// close ends the clients, as many as there are.
func (c computeClients) close() error {
	var errs []error
	for _, each := range []struct {
		made  bool
		close func() error
	}{
		{c.instances != nil, c.instances.Close}, {c.groups != nil, c.groups.Close}, {c.resizes != nil, c.resizes.Close},
		{c.templates != nil, c.templates.Close}, {c.policies != nil, c.policies.Close},
		{c.global != nil, c.global.Close}, {c.region != nil, c.region.Close}, {c.zone != nil, c.zone.Close},
	} {
		if each.made {
			errs = append(errs, each.close())
		}
	}
	return errors.Join(errs...)
}

// note returns what is known of a slice, for reading and writing under g.mu.
func (g *Engine) note(name string) *note {
	n := g.notes[name]
	if n == nil {
		n = &note{}
		g.notes[name] = n
	}
	return n
}

// noted changes what is known of a slice.
func (g *Engine) noted(name string, change func(*note)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.note(name))
}

func invalid(err error) error { return &apierror.Error{Kind: schema.ErrorInvalid, Err: err} }
