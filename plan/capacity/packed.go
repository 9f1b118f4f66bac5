package capacity

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A guest is a slice that lives on a host of another one, of which it has a part:
// a packed job has one for each of its tasks. No provider knows of it. It is there
// once it is recorded and its host was asked to serve it (AskedAt), and it is gone
// once it is given up (Terminating) and its host neither is to serve it nor says that
// it does; with its host's slice it dies. All else is as with any slice: it has an
// assignment and a report, and attempts run on it.
//
// guest.go is the life of one, guestroom.go where it goes, guesthost.go the hosts.

// guestName is the name of an owner's index-th guest on a host: on another one it
// has another name, so that what is left of it there is never taken for it.
func guestName(owner schema.Address, index int, host *schema.SliceSpec, n int) string {
	return plan.SliceNameIn(fmt.Sprintf("%s/%d", host.Name, n), host.Stack, owner, index)
}
