// Package propertytest holds the seed of properties: each commit's tests draw the same cases, so that
// no commit fails by chance on a case that its predecessor would have failed on as well. `make soak`
// draws other cases each time. It draws and checks nothing itself; start with Main.
package propertytest

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

// Seed is where each commit's tests begin.
const Seed = 20261123

// garbagePercent is how much garbage a property's cases may leave, in percent of what lives. Each
// case is small and soon garbage; with Go's 100 a quarter of the time is spent on collecting it.
const garbagePercent = 400

// Main is a package's TestMain. It has rapid begin with Seed, unless -rapid.seed is given; 0 is a
// seed that is another one each time. It has garbage collected less often, unless GOGC is set.
func Main(m *testing.M) {
	Fix()
	m.Run() // its status becomes that of the process once TestMain returns
}

// Fix is Main's first half, for packages whose TestMain does more.
func Fix() {
	flag.Parse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if given {
		return
	}
	if err := flag.Set("rapid.seed", strconv.Itoa(Seed)); err != nil {
		panic(err) // the package does not use rapid, and need not call this
	}
}
