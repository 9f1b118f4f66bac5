package main

import (
	"os"
	"strconv"
	"strings"
)

// This is a build for tests (see clusterproof_clock_linux_test.go), of a program
// whose clock is wrong: everything in its process that asks for the time of day
// is told another one, as on a machine whose clock is set wrong. Go asks the
// function that the kernel maps into each process, by an address which the
// runtime keeps; hence the linker's -checklinkname=0.

// clockShifts names the variable that says by how many seconds the clocks of
// processes are off: "agent=600,watch=-600,cli=0", cli being all other commands.
const clockShifts = "SHIFTED_CLOCKS"

var _ = shiftClock()

// shiftVDSO shifts the time of day of this process.
func shiftVDSO(seconds int64)

// shiftClock does so as the environment says, and reports whether it did.
func shiftClock() bool {
	who := "cli"
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent", "watch":
			who = os.Args[1]
		case "task-shim":
			who = "agent"
		}
	}
	for each := range strings.SplitSeq(os.Getenv(clockShifts), ",") {
		name, text, _ := strings.Cut(each, "=")
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && name == who && seconds != 0 {
			shiftVDSO(seconds)
			return true
		}
	}
	return false
}
