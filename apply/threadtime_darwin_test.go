package apply_test

import "time"

// threadTime is the time by the clock: the processor time of a thread is not to be had.
func threadTime() time.Duration { return time.Since(began) }

var began = time.Now()
