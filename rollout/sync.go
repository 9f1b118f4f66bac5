package rollout

import (
	"time"

	"github.com/fray-ml/fray/apply"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// lateWait is how long a controller is given to take in more of the values that
// became known: it may not be able to, and reports that in its log.
const lateWait = 10 * time.Second

// valueSync follows how a controller takes in values that became known.
type valueSync struct {
	late     *apply.Late     // nil: nothing reads such values
	desired  *schema.Desired // with values that the controller has not taken in yet; nil: it has
	accepted schema.Desired  // what the controller had at the last observation
	since    time.Time       // when desired or accepted changed last
}

// observe takes in a document of the controller's. What is wrong with the
// configuration, by values that are known now, is its error.
func (u *valueSync) observe(doc *state.Document, now time.Time) error {
	if u.late == nil {
		return nil
	}
	is := *doc
	for { // very many readers come in several parts, upon what was desired before
		if u.desired != nil {
			is.Desired = *u.desired
		}
		more, err := u.late.Refine(&is)
		if err != nil {
			return err
		}
		if more == nil {
			break
		}
		u.desired, u.since = more, now
	}
	if u.desired == nil {
		return nil
	}
	if !reconcile.SameDesired(&u.accepted, &doc.Desired) {
		u.accepted, u.since = doc.Desired, now
	}
	settled := planchange.Settled(*u.desired, doc)
	if reconcile.SameDesired(&settled, &doc.Desired) || now.Sub(u.since) > lateWait {
		u.desired = nil
	}
	return nil
}

// over reports whether the controller has taken in what is known.
func (u *valueSync) over() bool { return u.desired == nil }
