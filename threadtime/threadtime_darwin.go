package threadtime

import "time"

// Used is the time by the clock: the processor time of a thread is not to be had.
func Used() time.Duration { return time.Since(began) }

var began = time.Now()
