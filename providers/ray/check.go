package ray

import (
	"context"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

var _ providers.Checker = (*Provider)(nil)

// checkPatience bounds the calls of a check.
const checkPatience = 10 * time.Second

// Check finds out whether the cluster answers, and which jobs no node of it can hold today. An
// autoscaler may yet add such a node, so that these are warnings.
func (p *Provider) Check(ctx context.Context, desired schema.Desired) []providers.Problem {
	specs := shapes(desired)
	if len(specs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	_, err := p.client.version(ctx)
	var nodes []node
	if err == nil {
		nodes, err = p.client.nodes(ctx)
	}
	if err != nil {
		return []providers.Problem{{Attribute: "address", Summary: "Ray cannot be asked", Detail: sentence(err.Error())}}
	}
	var problems []providers.Problem
	for _, s := range specs {
		bundles, err := bundlesOf(s.spec)
		if err != nil {
			continue // reported where the type was read
		}
		why, fits := whyPending(bundles, headOf(s.spec), nodes)
		if !fits {
			problems = append(problems, providers.Problem{
				Addr: s.addr, Attribute: s.attribute, Warning: true, Summary: "No node is large enough",
				Detail: "Ray: " + why + ". The job waits until the cluster has such nodes.",
			})
		}
	}
	return problems
}

// shape is what the slices of a job or reservation take.
type shape struct {
	addr      schema.Address
	attribute string // that states it
	spec      schema.SliceSpec
}

// shapes are those of what is declared on Ray, one for all instances of a job.
func shapes(desired schema.Desired) []shape {
	var all []shape
	seen := map[schema.Address]bool{}
	add := func(addr schema.Address, attribute string, spec schema.SliceSpec) {
		if !seen[addr.Base()] {
			seen[addr.Base()] = true
			spec.Hosts = 1
			if acc, err := accelerators.Parse(spec.TPU); spec.TPU != "" && err == nil {
				spec.Hosts = acc.Hosts
			}
			all = append(all, shape{addr: addr, attribute: attribute, spec: spec})
		}
	}
	for i := range desired.Jobs {
		j := &desired.Jobs[i]
		if r := &j.Resources; r.Provider == schema.ProviderRay && r.Reservation == "" {
			// Of several alternatives it is the first: the provider has no zones, so that no other one is tried.
			add(j.Addr, "resources", schema.SliceSpec{TPU: r.TPU, GPU: r.GPU, CPU: r.CPU, Memory: r.Memory})
		}
	}
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		if r.Provider == schema.ProviderRay {
			add(r.Addr, "", schema.SliceSpec{TPU: r.Max.TPU, GPU: r.Max.GPU, CPU: r.Max.CPU, Memory: r.Max.Memory})
		}
	}
	return all
}

// sentence is the text of an error as a sentence.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
