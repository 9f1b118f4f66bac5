package task

import (
	"fmt"
	"net"
	"strconv"

	"github.com/fray-ml/fray/agent/ports"
)

// checkServed reports that another program has a port at which this task serves the
// others of its attempt: task 0 is the coordinator of JAX and of MEGASCALE. The
// host offered the ports while they were free.
func checkServed(t *Task) error {
	if t.in.Task != 0 || !t.in.TPU {
		return nil
	}
	for _, each := range []struct{ variable, address string }{
		{"JAX_COORDINATOR_ADDRESS", t.run.Coordinator}, {"MEGASCALE_PORT", t.run.Megascale},
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
