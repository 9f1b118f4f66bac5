package threadtime

import (
	"syscall"
	"time"
)

// Used is the processor time that the calling thread has used, to microseconds.
func Used() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &used); err != nil {
		panic("getrusage: " + err.Error()) // it knows this thread
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
