package funcs

import (
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func timeFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "formatdate", text: "A time in another format, in which letters stand for its parts.", returns: "string", fn: stdlib.FormatDateFunc,
			params:  []string{"format: with YYYY, MM, DD, hh, mm, ss, MMM, EEE, Z and the like; text between single quotes", "time: as RFC 3339 writes it"},
			example: `formatdate("DD MMM YYYY, hh:mm ZZZ", "2026-01-02T23:12:01Z")`,
		},
		{
			name: "timeadd", text: "A time and a duration later.", returns: "string", fn: stdlib.TimeAddFunc,
			params:  []string{"timestamp: as RFC 3339 writes it", "duration: such as 1.5h, 10m or -30s"},
			example: `timeadd("2026-11-22T00:00:00Z", "10m")`,
		},
		{
			name: "timecmp", text: "-1 if the first time is earlier than the second, 0 if they are the same, 1 if it is later.", returns: "number", fn: timeCompareFunc(),
			params:  []string{"timestamp_a: as RFC 3339 writes it", "timestamp_b: as RFC 3339 writes it"},
			example: `timecmp("2026-11-22T00:00:00Z", "2026-11-22T00:00:00+01:00")`,
		},
	}
}

func timeCompareFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var times [2]time.Time
			for i, arg := range args {
				t, err := time.Parse(time.RFC3339, arg.AsString())
				if err != nil {
					return cty.NilVal, function.NewArgError(i, fmt.Errorf(
						"%q is no time as RFC 3339 writes it, for example 2026-11-22T00:00:00Z", arg.AsString()))
				}
				times[i] = t
			}
			return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
		},
	})
}
