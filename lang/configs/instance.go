package configs

import (
	"math/big"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/schema"
)

// Instance is one expansion of a declaration.
type Instance struct {
	Key   schema.Key
	Value cty.Value // of for_each
}

// Values are the variables that an expression of the instance may use.
func (i Instance) Values() map[string]cty.Value {
	if n, ok := i.Key.Int(); ok {
		return map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberVal(new(big.Float).SetInt64(int64(n)))})}
	}
	if s, ok := i.Key.Str(); ok {
		return map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(s), "value": i.Value})}
	}
	return nil
}

// Addr is the address of the instance.
func (i Instance) Addr(base schema.Address) schema.Address {
	base.Key = i.Key
	return base
}
