// Package chaos proves the promise of actors with real processes: whatever happens
// to servers, connections and the register of names, a call that returned was
// executed exactly once, one that is reported as perhaps executed at most once, any
// other not at all, and each incarnation saw the calls of a caller in their order. A
// loop over a stream had the items of one execution, each once and in order, all of them
// if it came to the end. Pickles were read of peers of the namespace only.
//
// It has tests only. TestChaos (below) starts servers in Go and in Python (server_test.go,
// python/tests/chaos_server.py) behind proxies (front_test.go), callers of both
// (caller_test.go, python/tests/chaos_caller.py) and a register of names
// (registrytest), lets a seeded nemesis loose on them (nemesis_test.go) and a client of
// another namespace (intruder_test.go), and then compares what was executed and produced
// with what was reported and received (oracle_test.go, oraclestream_test.go).
package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
)

var (
	stormFor  = flag.Duration("chaos.for", 20*time.Second, "how long the storm of TestChaos lasts")
	stormSeed = flag.Uint64("chaos.seed", propertytest.Seed, "what happens, and to whom; 0: a random one, which is printed")
	processes = flag.Int("chaos.processes", 2, "calling processes in each language; there are 16 callers in all")
	keepFiles = flag.String("chaos.keep", "", "directory that is left with the files of a run; \"\": none")
)

// envRole says what a process that a test started is to be; "": a run of the tests.
const envRole = "FRAY_CHAOS_ROLE"

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	switch role := os.Getenv(envRole); role {
	case "":
		os.Exit(m.Run())
	case roleServer:
		err = serve(os.Stdin, os.Stdout)
	case roleCaller:
		err = call(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("%s is %q", envRole, role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
