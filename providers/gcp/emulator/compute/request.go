package compute

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// endpoint is one method of the API.
type endpoint struct {
	method     string // "instances.insert"
	permission string // "compute.instances.create"
	api        string // "": Compute Engine's
	creates    bool   // counts for the limit of creations
	do         func(r *request) (any, error)
}

// request is one request, its path taken apart.
type request struct {
	*http.Request
	project, zone, region, name string
	endpoint                    endpoint
}

// scope is "zones/us-west4-a", "regions/us-west4" or "global".
func (r *request) scope() string { return scopeOf(r.zone, r.region) }

func scopeOf(zone, region string) string {
	switch {
	case zone != "":
		return "zones/" + zone
	case region != "":
		return "regions/" + region
	}
	return "global"
}

// resource is what the request is about, "projects/p/zones/z/instances/n".
func (r *request) resource() string {
	collection, _, _ := strings.Cut(r.endpoint.method, ".")
	if r.name == "" {
		return "projects/" + r.project
	}
	return "projects/" + r.project + "/" + r.scope() + "/" + collection + "/" + r.name
}

// key is what the request is about in the model.
func (r *request) key(kind cloud.Kind) cloud.Key {
	return cloud.Key{Project: r.project, Zone: r.zone, Kind: kind, Name: r.name}
}

// read decodes the request's body, which has nothing that the emulator does not know.
func (r *request) read(into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return invalid("The body did not arrive: %v", err)
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return invalid("Invalid JSON payload received: %v", err)
	}
	return nil
}

func pattern(method, scope, rest string) string {
	return fmt.Sprintf("%s /compute/v1/projects/{project}/%s/%s", method, scope, rest)
}
