package change

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// OutputChanges compares outputs with those that are recorded, in the order of
// their names. Sensitive values are sealed in both, and in no change. As with
// Amendments, it is the caller of [Diff] who puts them into a Plan.
func OutputChanges(recorded, declared map[string]schema.Output) []plan.OutputChange {
	names := slices.Collect(maps.Keys(recorded))
	for name := range declared {
		if _, both := recorded[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var changes []plan.OutputChange
	for _, name := range names {
		before, had := recorded[name]
		after, has := declared[name]
		c := plan.OutputChange{Name: name, Sensitive: before.Sensitive || after.Sensitive, Unknown: after.Unknown}
		switch {
		case !had:
			c.Verb = plan.VerbCreate
		case !has:
			c.Verb = plan.VerbDelete
		case sameOutput(before, after):
			c.Verb = plan.VerbNone
		default:
			c.Verb = plan.VerbUpdate
		}
		if !c.Sensitive {
			c.Before, c.After = compacted(before.Value), compacted(after.Value)
		}
		changes = append(changes, c)
	}
	return changes
}

// sameOutput reports whether two outputs have the same value. Those that are both
// not known are the same: an apply would record what is recorded.
func sameOutput(a, b schema.Output) bool {
	if a.Sensitive != b.Sensitive || a.Unknown != b.Unknown {
		return false
	}
	if a.Sensitive {
		x, err := json.Marshal(a.Secret)
		if err != nil {
			return false // one in clear compares with nothing
		}
		y, err := json.Marshal(b.Secret)
		return err == nil && bytes.Equal(x, y)
	}
	if bytes.Equal(a.Value, b.Value) {
		return true
	}
	x, xok := decoded(a.Value)
	y, yok := decoded(b.Value)
	return xok && yok && reflect.DeepEqual(x, y)
}

func decoded(raw json.RawMessage) (value any, ok bool) {
	if len(raw) == 0 {
		return nil, true
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // as it was written
	return value, d.Decode(&value) == nil
}

// compacted is a value on one line: a state may have been indented.
func compacted(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
