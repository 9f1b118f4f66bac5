package cloud

import (
	"time"
)

// Clock is what the model runs on.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once the time has come, in a goroutine of the clock's.
	// The returned function withdraws a call that has not begun.
	AfterFunc(at time.Time, f func()) (stop func())
}

var (
	_ Clock = (*Wall)(nil)
	_ Clock = (*Virtual)(nil)
)

// Wall is the real clock, or one that runs faster from the moment it is made.
type Wall struct {
	start time.Time
	speed float64
}

// Real returns the clock of this machine.
func Real() *Wall { return Faster(1) }

// Faster returns a clock that starts now and runs speed times as fast as the
// real one; a speed of 0 or less means 1.
func Faster(speed float64) *Wall {
	if speed <= 0 {
		speed = 1
	}
	return &Wall{start: time.Now(), speed: speed}
}

// Now is the time on this clock.
func (w *Wall) Now() time.Time {
	return w.start.Add(time.Duration(float64(time.Since(w.start)) * w.speed))
}

// AfterFunc calls f in a goroutine of its own.
func (w *Wall) AfterFunc(at time.Time, f func()) (stop func()) {
	wait := time.Duration(float64(at.Sub(w.Now())) / w.speed)
	timer := time.AfterFunc(max(wait, 0), f)
	return func() { timer.Stop() }
}
