package decode

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

func (e *Decoder) namespace(decl *configs.Declaration) schema.Namespace {
	b := decl.Block
	share := e.userShare(b)
	n := schema.Namespace{
		Addr:     e.Global(decl.Addr),
		MaxChips: share.MaxChips, MaxCPU: share.MaxCPU, Budget: share.Budget, Weight: share.Weight,
		IdleTimeout: eval.Get(e, nil, b.Attr("idle_timeout"), as.Duration, 0),
	}
	for _, user := range b.Children("user") {
		u := e.userShare(user)
		if slices.ContainsFunc(n.Users, func(other schema.UserShare) bool { return other.Name == u.Name }) {
			e.ErrorAt(user.Range(), "Block stands twice", fmt.Sprintf("The namespace has another user block named %q. Put both into one.", u.Name))
			continue
		}
		n.Users = append(n.Users, u)
	}
	if cost := b.Child("cost"); cost != nil {
		n.Cost = costBudget(e, cost)
	}
	slices.SortFunc(n.Users, func(a, b schema.UserShare) int { return cmp.Compare(a.Name, b.Name) })
	return n
}

// userShare decodes what namespaces and users have in common.
func (e *Decoder) userShare(b *configs.Block) schema.UserShare {
	chips := as.WholeNumber(1, math.MaxInt32)
	return schema.UserShare{
		Name:     b.Name,
		MaxChips: eval.Get(e, nil, b.Attr("max_chips"), chips, 0),
		MaxCPU:   eval.Get(e, nil, b.Attr("max_cpu"), as.Cores, 0),
		Budget:   eval.Get(e, nil, b.Attr("budget"), chips, 0),
		Weight:   eval.Get(e, nil, b.Attr("weight"), asWeight, 0),
	}
}

// costBudget decodes a cost block. What is a default is left out, so that it is no change to
// write it.
func costBudget(e *Decoder, b *configs.Block) schema.CostBudget {
	c := schema.CostBudget{
		MaxPerMonth: eval.Get(e, nil, b.Attr("max_per_month"), asDollars, 0),
		Action:      eval.Get(e, nil, b.Attr("action"), as.OneOf(schema.CostActions()...), schema.CostWarn),
		WarnAt:      eval.Get(e, nil, b.Attr("warn_at"), asPart, schema.DefaultWarnAt),
		Price:       eval.Get(e, nil, b.Attr("price"), as.OneOf(schema.PriceEnds()...), schema.PriceHigh),
	}
	if c.Action == schema.CostWarn {
		c.Action = ""
	}
	if c.WarnAt == schema.DefaultWarnAt {
		c.WarnAt = 0
	}
	if c.Price == schema.PriceHigh {
		c.Price = ""
	}
	return c
}

func asDollars(v cty.Value) (float64, error) {
	n, err := as.Float(v)
	if err != nil {
		return 0, fmt.Errorf("want US dollars as a number above zero, this is %s", diagnose.Friendly(v))
	}
	f, _ := n.Float64()
	if f < 0.01 || f > 1e12 {
		return 0, fmt.Errorf("want US dollars from 0.01 to 1000000000000, this is %s", n.Text('g', 10))
	}
	return f, nil
}

func asWeight(v cty.Value) (float64, error) {
	n, err := as.Float(v)
	if err != nil {
		return 0, fmt.Errorf("want a number above zero, this is %s", diagnose.Friendly(v))
	}
	f, _ := n.Float64()
	if f < 0.001 || f > 1e6 {
		return 0, fmt.Errorf("want a weight from 0.001 to 1000000, this is %s", n.Text('g', 10))
	}
	return f, nil
}
