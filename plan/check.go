package plan

import (
	"github.com/fray-ml/fray/schema"
)

// Problem is something declared that could never be carried out.
type Problem struct {
	Addr      schema.Address
	Attribute string // to point at, as in schema.Config.Ranges
	Summary   string
	Detail    string
}
