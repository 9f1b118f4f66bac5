package capacity

import "github.com/fray-ml/fray/plan/snapshot"

// Ungrown is what a unit needs if no reservation grows for it: nothing of providers,
// but what others have of those reservations.
func (w *Wants) Ungrown() *Wants {
	is := &Wants{Full: w.Full}
	for _, c := range w.Claims {
		if c.Bound.Kind == OfProvider {
			continue
		}
		c.Used, c.Unmade = c.Used.Plus(c.Unmade, 1), snapshot.Load{}
		is.Claims = append(is.Claims, c)
	}
	for _, f := range w.Hosts {
		still := *f
		still.still = true
		is.Hosts = append(is.Hosts, &still)
	}
	return is
}
