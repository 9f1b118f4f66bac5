package plan

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// HasExpired reports whether the time of a reservation is over.
func (p *Plan) HasExpired(addr schema.Address) bool {
	return slices.ContainsFunc(p.Expiries, func(e Expiry) bool { return e.Addr == addr && e.Over })
}
