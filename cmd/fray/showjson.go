package main

import (
	"encoding/json"

	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// stateJSON is what show --json prints of a state, as docs/show-json.md
// describes it.
type stateJSON struct {
	FormatVersion string            `json:"format_version"`
	FrayVersion   string            `json:"fray_version"`
	Lineage       string            `json:"lineage"`
	Serial        uint64            `json:"serial"`
	Revision      uint64            `json:"revision"`
	Resources     []resourceJSON    `json:"resources"`
	Outputs       []shownOutputJSON `json:"outputs"`
}

type resourceJSON struct {
	Address    schema.Address  `json:"address"`
	Kind       schema.Kind     `json:"kind"`
	Group      string          `json:"group,omitempty"`
	Name       string          `json:"name"`
	Key        any             `json:"key,omitempty"` // a number or a string
	Attributes []attributeJSON `json:"attributes"`
	Facts      map[string]any  `json:"facts,omitempty"`
}

type attributeJSON struct {
	Path      string          `json:"path"`
	Value     json.RawMessage `json:"value,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"` // the value is then absent
	Unknown   bool            `json:"unknown,omitempty"`   // likewise
}

type shownOutputJSON struct {
	Name        string          `json:"name"`
	Value       json.RawMessage `json:"value,omitempty"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Unknown     bool            `json:"unknown,omitempty"`
	Description string          `json:"description,omitempty"`
}

func stateAsJSON(doc *state.Document) stateJSON {
	out := stateJSON{
		FormatVersion: "1.0", FrayVersion: doc.FrayVersion, Lineage: doc.Lineage, Serial: doc.Serial, Revision: doc.Revision,
		Resources: []resourceJSON{}, Outputs: []shownOutputJSON{},
	}
	for _, d := range planchange.Describe(doc) {
		out.Resources = append(out.Resources, resourceAsJSON(d))
	}
	for _, name := range stack.SortedKeys(doc.Outputs) {
		o := doc.Outputs[name]
		shown := shownOutputJSON{Name: name, Sensitive: o.Sensitive, Unknown: o.Unknown, Description: o.Description}
		if !o.Sensitive && !o.Unknown {
			shown.Value = o.Value
		}
		out.Outputs = append(out.Outputs, shown)
	}
	return out
}

func resourceAsJSON(d planchange.Described) resourceJSON {
	r := resourceJSON{Address: d.Addr, Kind: d.Addr.Kind, Group: d.Addr.Group, Name: d.Addr.Name, Attributes: []attributeJSON{}}
	if n, ok := d.Addr.Key.Int(); ok {
		r.Key = n
	} else if s, ok := d.Addr.Key.Str(); ok {
		r.Key = s
	}
	for _, a := range d.Attrs {
		r.Attributes = append(r.Attributes, attributeJSON{Path: a.Path, Value: a.After, Sensitive: a.Sensitive, Unknown: a.Unknown})
	}
	for _, f := range factsOf(d.Job) {
		if r.Facts == nil {
			r.Facts = map[string]any{}
		}
		r.Facts[f.name] = f.value
	}
	return r
}
