// Package across proves that actors are the same in every language: what a
// caller sees does not depend on what it or the actor is written in.
//
// It has tests only. Each of them runs for all four combinations of a caller
// (caller_test.go, python/tests/across.py) and a server (subject_test.go,
// python/tests/across.py) in Go and in Python, which are processes of their own but
// for the caller in Go. calls_test.go has what calls return and how they fail,
// faults_test.go restarts and cut connections, secure_test.go identities,
// hostile_test.go servers that mean harm and stranger_test.go such clients.
package across

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// patience is how long tests wait for what is to happen: the machines are slow.
const patience = 5 * time.Minute

// envOrders has the orders of a process that a test started, JSON of orders; "": a run of the tests.
const envOrders = "FRAY_ACROSS_ORDERS"

func TestMain(m *testing.M) {
	text := os.Getenv(envOrders)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := serve(text, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
