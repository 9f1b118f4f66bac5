package gce

import (
	"context"
	"net/http"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
)

// api is the API of Compute Engine in one project: reads, lists and single changes.
type api struct {
	client  *computeapi.Client
	project string
	reader  engine.Reader
}

// openAPI finds the credentials of the service, or what stands in for it.
func openAPI(ctx context.Context, config engine.Config) (api, error) {
	transport, endpoint, err := reach(ctx, config)
	if err != nil {
		return api{}, err
	}
	return api{
		client: computeapi.NewClient(transport, endpoint, config.Project), project: config.Project, reader: engine.Reader{Backoff: config.Backoff},
	}, nil
}

// reach returns how the service is reached, and where.
func reach(ctx context.Context, config engine.Config) (http.RoundTripper, string, error) {
	switch {
	case config.Local != nil:
		return config.Local.REST, "http://compute.localhost", nil
	case config.Endpoint != "":
		return client.Unauthorized(), config.Endpoint, nil
	}
	return client.Dial(ctx, client.API{Name: "compute", Scope: "https://www.googleapis.com/auth/cloud-platform"}, "")
}

// Close ends the connections.
func (g *api) Close() error {
	g.client.Close()
	return nil
}

func zonal(zone, collection string, rest ...string) computeapi.Path {
	return append(computeapi.Path{"zones", zone, collection}, rest...)
}

func instancePath(zone string, rest ...string) computeapi.Path {
	return zonal(zone, "instances", rest...)
}

func groupPath(zone string, rest ...string) computeapi.Path {
	return zonal(zone, "instanceGroupManagers", rest...)
}

func templatePath(rest ...string) computeapi.Path {
	return append(computeapi.Path{"global", "instanceTemplates"}, rest...)
}

// policyPath is one of the region that a zone is in.
func policyPath(zone string, rest ...string) computeapi.Path {
	return append(computeapi.Path{"regions", accelerators.RegionOf(zone), "resourcePolicies"}, rest...)
}
