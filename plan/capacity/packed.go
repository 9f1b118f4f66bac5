package capacity

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A packed task has a slice of its own, which is placed on a host of another slice:
// a packed job has one for each of its tasks. No provider knows of it. It is there
// once it is recorded and its host was asked to serve it (PendingSince), and it is gone
// once it is given up (Terminating) and its host neither is to serve it nor says that
// it does; with its host's slice it dies. All else is as with any slice: it has an
// assignment and a report, and attempts run on it.
//
// packed.go is the life of one, packedroom.go where it goes, packedhost.go the hosts.

// packedName is the name of an owner's index-th packed slice on a host: on another one it
// has another name, so that what is left of it there is never taken for it.
func packedName(owner schema.Address, index int, host *schema.SliceSpec, n int) string {
	return plan.SliceNameIn(fmt.Sprintf("%s/%d", host.Name, n), host.Stack, owner, index)
}
