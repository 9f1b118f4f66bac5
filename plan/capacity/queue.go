package capacity

import (
	"cmp"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Unit is what is placed together: the jobs of a group, or one job. It stands
// where the best of its members would.
type Unit struct {
	Jobs     []*schema.Job
	Addr     schema.Address // of the group or job
	Fresh    bool           // some of it has no slices yet
	Declared int            // band
	Band     int            // in effect
	Priority int
	Since    time.Time // it began to wait for its turn
	Space    *Account
	User     *Account
	Over     *Account // whose budget it is beyond, nil: it is within them
}

// Before compares units of one namespace and user.
func (u *Unit) Before(v *Unit) int {
	return cmp.Or(cmp.Compare(v.Priority, u.Priority), u.Since.Compare(v.Since), u.Jobs[0].Addr.Compare(v.Jobs[0].Addr))
}
