package gce

import (
	"context"
	"errors"
	"net/http"

	compute "cloud.google.com/go/compute/apiv1"
	"google.golang.org/api/option"

	"github.com/fray-ml/fray/providers/gcp/engine"
)

// api is the API of Compute Engine in one project: reads, lists and single changes.
type api struct {
	clients computeClients
	project string
	reader  engine.Reader
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

// computeOptions lead to the service, or to what stands in for it.
func computeOptions(config engine.Config) []option.ClientOption {
	if config.Local != nil {
		return []option.ClientOption{option.WithEndpoint("http://compute.localhost"), option.WithHTTPClient(&http.Client{Transport: config.Local.REST})}
	}
	if config.Endpoint == "" {
		return nil
	}
	return []option.ClientOption{option.WithEndpoint(config.Endpoint), option.WithoutAuthentication()}
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
func (g *api) Close() error { return g.clients.close() }

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
