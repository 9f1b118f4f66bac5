package status

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/terminal"
)

// pools are the reservations, declared and launched ones.
func (v *View) pools() []capacity.PoolStatus {
	return capacity.ReservationStatus(launch.Wanted(&v.Doc.Desired, v.Doc, v.now), v.plan, v.now)
}

// reservations prints how they stand, and what idles for the next job.
func (v *View) reservations(a *terminal.Terminal) error {
	pools := v.pools()
	if len(pools) > 0 {
		fmt.Fprintln(a.Stdout)
		w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
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
	for _, s := range v.Doc.Slices {
		if !s.IdleSince.IsZero() && s.Terminating.IsZero() && s.Spec.Owner.Kind != schema.KindReservation {
			idle++
		}
	}
	switch idle {
	case 0:
	case 1:
		fmt.Fprintln(a.Stdout, "\n1 slice idles for the next job.")
	default:
		fmt.Fprintf(a.Stdout, "\n%d slices idle for the next job.\n", idle)
	}
	return nil
}

// ends is when a reservation's time is over, "-" for one without an end.
func (v *View) ends(p *capacity.PoolStatus) string {
	switch {
	case p.ExpiresAt.IsZero():
		return "-"
	case p.Expired:
		return "ended"
	}
	return p.ExpiresAt.Local().Format(time.DateTime)
}

// poolNote reports what a reservation waits for, and else who uses it.
func poolNote(p *capacity.PoolStatus) string {
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
