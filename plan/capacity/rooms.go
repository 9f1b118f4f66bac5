package capacity

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// HostCapacity adds the room on hosts of reservations for packed tasks.
type HostCapacity struct {
	*Zones

	chosenRooms map[schema.Address][]placed // see fits
	grownRooms  bool                        // some rooms are of slices that are not there yet
	shared      map[string]bool             // see isShared
}

// SpaceShortage says which part of a namespace's or user's max is exceeded.
func SpaceShortage(need, used, limit snapshot.Load) string {
	var short []string
	if limit.Chips > 0 && need.Chips > 0 && used.Chips+need.Chips > limit.Chips {
		short = append(short, fmt.Sprintf("needs %d more chip%s, %d of its max_chips %d are held", need.Chips, Plural(need.Chips != 1), used.Chips, limit.Chips))
	}
	if limit.Milli > 0 && need.Milli > 0 && used.Milli+need.Milli > limit.Milli {
		cores := func(milli int) float64 { return float64(milli) / 1000 }
		short = append(short, fmt.Sprintf("needs %g more core%s, %g of its max_cpu %g are held", cores(need.Milli), Plural(need.Milli != 1000), cores(used.Milli), cores(limit.Milli)))
	}
	return strings.Join(short, "; ")
}
