package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/accelerators"
)

func tpuFunctions() []libraryFunction {
	return []libraryFunction{{
		name: "tpu", text: "The shape of a TPU type, as the attribute tpu takes it.", fn: tpuFunc(),
		returns: "object({ chips = number, chips_per_host = number, generation = string, hosts = number, topology = string, type = string })",
		params:  []string{"type: such as v5litepod-16"}, example: `tpu("v5e-16")`,
	}}
}

func tpuFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Type: cty.String}},
		Type: function.StaticReturnType(cty.Object(map[string]cty.Type{
			"type": cty.String, "generation": cty.String, "chips": cty.Number, "hosts": cty.Number, "chips_per_host": cty.Number, "topology": cty.String,
		})),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			if len(name) > 63 {
				return cty.NilVal, function.NewArgErrorf(0, "it is no TPU type, such as v5litepod-16")
			}
			a, err := accelerators.Parse(name)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.ObjectVal(map[string]cty.Value{
				"type": cty.StringVal(a.Type), "generation": cty.StringVal(a.Generation),
				"chips": cty.NumberIntVal(int64(a.Chips)), "hosts": cty.NumberIntVal(int64(a.Hosts)),
				"chips_per_host": cty.NumberIntVal(int64(a.ChipsPerHost)), "topology": cty.StringVal(a.Topology),
			}), nil
		},
	})
}
