package threadtime

import (
	"runtime"
	"testing"
)

// The time of a thread grows while that works.
func TestUsed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for before := Used(); Used() == before; {
		continue
	}
}
