package task

import (
	"fmt"
	"net"
	"strconv"

	"github.com/fray-ml/fray/agent/ports"
	"github.com/fray-ml/fray/state"
)

// checkServed reports that another program has a port at which task 0 of a run serves
// the others, as the coordinator of JAX and of MEGASCALE. The host offered the ports
// while they were free.
func checkServed(run *state.Run) error {
	for _, each := range []struct{ variable, address string }{
		{"JAX_COORDINATOR_ADDRESS", run.Coordinator}, {"MEGASCALE_PORT", run.Megascale},
	} {
		_, text, err := net.SplitHostPort(each.address)
		port, numberErr := strconv.Atoi(text)
		if err != nil || numberErr != nil {
			continue // there is none
		}
		if err := ports.CheckFree(port); err != nil {
			return fmt.Errorf("another program of the host has port %d, which is for %s: %w", port, each.variable, err)
		}
	}
	return nil
}
