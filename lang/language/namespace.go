package language

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

func namespaceType() *BlockType {
	shares := []Attribute{
		{Name: "max_chips", Type: "number", Default: "no limit", Doc: "TPU chips and GPUs its jobs may hold at once; more wait"},
		{Name: "max_cpu", Type: "number", Default: "no limit", Doc: "cores of hosts without TPUs that its jobs may hold at once; more wait"},
		{Name: "budget", Type: "number", Default: "no bound", Doc: "TPU chips and GPUs beyond which its jobs count as batch: they wait behind all others and yield to them"},
		{Name: "weight", Type: "number", Default: "1", Doc: "its part of what all compete for: with 2, twice as much as others with 1"},
	}
	user := &BlockType{
		Name: "user", Label: "NAME", FreeLabel: true, Repeated: true,
		Doc:   "bounds and share of one user among those of the namespace; jobs name theirs in user",
		Attrs: slices.Clone(shares),
	}
	user.Attrs[3].Doc = "its part of the namespace's share"
	return &BlockType{
		Name: "namespace", Label: "NAME", Repeated: true,
		Doc: "a scope for actor names, access and fair share",
		Attrs: append(shares, Attribute{
			Name: "idle_timeout", Type: "duration", Default: "not at all; 1m for launched jobs",
			Doc: "how long a slice that a job has done with is kept for the next one of the namespace",
		}),
		Blocks: []*BlockType{user, costType()},
	}
}

func costType() *BlockType {
	return &BlockType{
		Name: "cost",
		Doc:  "what the namespace may cost in a calendar month (UTC), by the estimates of fray cost",
		Attrs: []Attribute{
			{Name: "max_per_month", Type: "number", Required: true, Doc: "US dollars"},
			{Name: "action", Type: "string", Default: "\"warn\"", Values: valuesOf(schema.CostActions()...), Doc: "what follows once that is used: \"warn\" reports it, \"hold\" has new work wait for the next month, \"stop\" stops what runs, too"},
			{Name: "warn_at", Type: "number", Default: "0.8", Doc: "the part of it from which it is reported as nearly used"},
			{Name: "price", Type: "string", Default: "\"high\"", Values: valuesOf(schema.PriceEnds()...), Doc: "which end of an estimate counts"},
		},
	}
}
