package schedule

import (
	"github.com/fray-ml/fray/schema"
)

// Victims chooses the jobs that make room for others.
type Victims struct {
	*Claims

	yielding   []schema.Address // jobs that make room for others
	evicted    []schema.Address // those of them that begin to do so
	infeasible []infeasible     // see makeRoom
	victims    []*victim        // made when first asked for, see candidates
}
