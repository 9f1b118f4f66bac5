package schema

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

func namespaceType() *blockType {
	shares := []attribute{
		{name: "max_chips", typ: "number", def: "no limit", doc: "TPU chips its jobs may hold at once; more wait"},
		{name: "max_cpu", typ: "number", def: "no limit", doc: "cores of hosts without TPUs that its jobs may hold at once; more wait"},
		{name: "budget", typ: "number", def: "no bound", doc: "TPU chips beyond which its jobs count as batch: they wait behind all others and yield to them"},
		{name: "weight", typ: "number", def: "1", doc: "its part of what all compete for: with 2, twice as much as others with 1"},
	}
	user := &blockType{
		name: "user", label: "NAME", freeLabel: true, repeated: true,
		doc:   "bounds and share of one user among those of the namespace; jobs name theirs in user",
		attrs: slices.Clone(shares),
	}
	user.attrs[3].doc = "its part of the namespace's share"
	return &blockType{
		name: "namespace", label: "NAME", repeated: true,
		doc: "a scope for actor names, access and fair share",
		attrs: append(shares, attribute{
			name: "idle_timeout", typ: "duration", def: "not at all; 1m for launched jobs",
			doc: "how long a slice that a job has done with is kept for the next one of the namespace",
		}),
		blocks: []*blockType{user},
	}
}

func (e *evaluator) namespace(decl *declaration) Namespace {
	b := decl.block
	share := e.userShare(b)
	n := Namespace{
		Addr:     e.global(decl.addr),
		MaxChips: share.MaxChips, MaxCPU: share.MaxCPU, Budget: share.Budget, Weight: share.Weight,
		IdleTimeout: get(e, nil, b.attr("idle_timeout"), asDuration, 0),
	}
	for _, user := range b.children("user") {
		u := e.userShare(user)
		if slices.ContainsFunc(n.Users, func(other UserShare) bool { return other.Name == u.Name }) {
			e.errorAt(user.rng(), "Block stands twice", fmt.Sprintf("The namespace has another user block named %q. Put both into one.", u.Name))
			continue
		}
		n.Users = append(n.Users, u)
	}
	slices.SortFunc(n.Users, func(a, b UserShare) int { return cmp.Compare(a.Name, b.Name) })
	return n
}

// userShare decodes what namespaces and users have in common.
func (e *evaluator) userShare(b *block) UserShare {
	chips := wholeNumber(1, math.MaxInt32)
	return UserShare{
		Name:     b.name,
		MaxChips: get(e, nil, b.attr("max_chips"), chips, 0),
		MaxCPU:   get(e, nil, b.attr("max_cpu"), asCores, 0),
		Budget:   get(e, nil, b.attr("budget"), chips, 0),
		Weight:   get(e, nil, b.attr("weight"), asWeight, 0),
	}
}

func asWeight(v cty.Value) (float64, error) {
	n, err := asFloat(v)
	if err != nil {
		return 0, fmt.Errorf("want a number above zero, this is %s", friendly(v))
	}
	f, _ := n.Float64()
	if f < 0.001 || f > 1e6 {
		return 0, fmt.Errorf("want a weight from 0.001 to 1000000, this is %s", n.Text('g', 10))
	}
	return f, nil
}
