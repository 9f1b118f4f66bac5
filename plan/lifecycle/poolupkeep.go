package lifecycle

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// PoolUpkeep decides what becomes of the slices of reservations, and of idle ones.
type PoolUpkeep struct {
	*Attempts

	Goes   map[capacity.Bound]snapshot.Load // capacity of what is being deleted, see going
	coming map[schema.ProviderName]plan.Amount
}
