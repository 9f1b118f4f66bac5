package language

import (
	"slices"
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
		Blocks: []*BlockType{user},
	}
}
