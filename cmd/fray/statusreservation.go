package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// pools are the reservations, declared and launched ones.
func (v *view) pools() []plan.PoolStatus {
	return plan.ReservationStatus(plan.Wanted(&v.doc.Desired, v.doc, v.now), v.plan, v.now)
}

// reservations prints how they stand, and what idles for the next job.
func (v *view) reservations(a *app) error {
	pools := v.pools()
	if len(pools) > 0 {
		fmt.Fprintln(a.stdout)
		w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "RESERVATION\tUP\tPENDING\tFREE\tMIN\tMAX\tENDS\tNOTE")
		for i := range pools {
			p := &pools[i]
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n",
				p.Addr, p.Allocated, p.Pending, p.Free, p.Min.Slices, p.Max.Slices, v.ends(p), poolNote(p))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	idle := 0
	for _, s := range v.doc.Slices {
		if !s.IdleSince.IsZero() && s.Terminating.IsZero() && s.Spec.Owner.Kind != schema.KindReservation {
			idle++
		}
	}
	switch idle {
	case 0:
	case 1:
		fmt.Fprintln(a.stdout, "\n1 slice idles for the next job.")
	default:
		fmt.Fprintf(a.stdout, "\n%d slices idle for the next job.\n", idle)
	}
	return nil
}

// ends is when a reservation's time is over, "-" for one without an end.
func (v *view) ends(p *plan.PoolStatus) string {
	switch {
	case p.ExpiresAt.IsZero():
		return "-"
	case p.Expired:
		return "ended"
	}
	return p.ExpiresAt.Local().Format(time.DateTime)
}

// poolNote says what a reservation waits for, and else who uses it.
func poolNote(p *plan.PoolStatus) string {
	const most = 3
	switch n := len(p.Reasons); {
	case n > 1:
		return fmt.Sprintf("%s (and %d more)", p.Reasons[0], n-1)
	case n == 1:
		return p.Reasons[0]
	case len(p.Jobs) == 0:
		return ""
	}
	var users []string
	for _, addr := range p.Jobs[:min(most, len(p.Jobs))] {
		users = append(users, addr.String())
	}
	if more := len(p.Jobs) - len(users); more > 0 {
		users = append(users, fmt.Sprintf("%d more", more))
	}
	return "used by " + strings.Join(users, ", ")
}
