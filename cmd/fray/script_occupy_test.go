package main

import (
	"net"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// occupy JOB listens on the ports of a job's first task until the script ends:
// its next attempt gets others.
func occupy(ts *testscript.TestScript, _ bool, args []string) {
	hosts := reports(ts.MkAbs(".fray"), args[0])
	if len(hosts) == 0 || len(hosts[0].Task.Ports) == 0 {
		ts.Fatalf("no host reports a task of %s with ports", args[0])
	}
	for _, port := range hosts[0].Task.Ports {
		l, err := net.Listen("tcp", net.JoinHostPort(hosts[0].Address, strconv.Itoa(port)))
		ts.Check(err)
		ts.Defer(func() { _ = l.Close() })
	}
}
