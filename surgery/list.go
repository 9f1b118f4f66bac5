package surgery

import (
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// listFormat is the version of what fray state list --json prints; fields are only ever
// added to it.
const listFormat = "1.0"

// List has the addresses of a state.
type List struct {
	FormatVersion string          `json:"format_version"`
	Lineage       string          `json:"lineage"`
	Serial        uint64          `json:"serial"`
	Resources     []listedAddress `json:"resources"`
}

type listedAddress struct {
	Address  schema.Address   `json:"address"`
	Kind     schema.Kind      `json:"kind"`
	Status   schema.JobStatus `json:"status,omitempty"`
	Launched bool             `json:"launched,omitempty"`
}

// ListJSON is what fray state list --json prints, as docs/state-list-json.md describes it.
func ListJSON(doc *state.Document) List {
	out := List{FormatVersion: listFormat, Lineage: doc.Lineage, Serial: doc.Serial, Resources: []listedAddress{}}
	for _, addr := range Recorded(doc) {
		listed := listedAddress{Address: addr, Kind: addr.Kind}
		if j := doc.Jobs[addr]; j != nil {
			listed.Status, listed.Launched = j.Status, j.Launch != nil
		} else {
			listed.Launched = doc.Resources[addr].Launch != nil
		}
		out.Resources = append(out.Resources, listed)
	}
	return out
}

// Recorded are those that the state has records of, in order.
func Recorded(doc *state.Document) []schema.Address {
	var recorded []schema.Address
	for _, addr := range configuration.AllAddresses(doc, nil) {
		_, job := doc.Jobs[addr]
		_, resource := doc.Resources[addr]
		if job || resource {
			recorded = append(recorded, addr)
		}
	}
	return recorded
}
