package plan

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Reason is why something waits; the zero reason is none.
type Reason struct {
	Text  string
	Kind  WaitKind  // "": it waits for nothing
	Until time.Time // when it is tried again; zero: not a matter of time
	// underway: it will come about by what the plan does or what is being done.
	Underway bool
	// since is when that of which the text says that it has waited began to.
	Since time.Time
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.Kind == WaitNone }

// Because is a reason of a kind.
func Because(kind WaitKind, text string) Reason { return Reason{Kind: kind, Text: text} }

// Underway returns a reason that comes about by itself.
func Underway(text string) Reason { return Reason{Kind: WaitUnderway, Text: text, Underway: true} }

// Depends is what comes about by what another job does, or by its values.
func Depends(text string) Reason { return Reason{Kind: WaitDependency, Text: text, Underway: true} }

// Shown is the reason for people, with the time left.
func (r Reason) Shown(now time.Time) string {
	if !r.Since.IsZero() {
		return r.Text + " " + now.Sub(r.Since).Truncate(time.Minute).String()
	}
	if r.Until.IsZero() {
		return r.Text
	}
	return r.Text + "; next try in " + roundUp(r.Until.Sub(now)).String()
}

// roundUp keeps a wait readable, and the same for a second at a time.
func roundUp(t time.Duration) time.Duration {
	return (t + time.Second - 1).Truncate(time.Second)
}

// Waiting is part of a Pending in the making.
type Waiting struct {
	Addr schema.Address
	Why  Reason
}
