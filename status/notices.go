package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// receiverJSON is how deliveries to a receiver stand that do not go as they should.
type receiverJSON struct {
	Notification schema.Address  `json:"notification"`
	Receiver     schema.Receiver `json:"receiver,omitempty"` // "": of all, with Dropped
	Waiting      int             `json:"waiting,omitempty"`  // notices that it is to be told
	Since        time.Time       `json:"since,omitzero"`     // deliveries fail
	Failure      string          `json:"failure,omitempty"`
	Dropped      int             `json:"dropped,omitempty"` // deliveries that were given up
}

// readNotices is the ledger of a stack that has notifications, nil for another one and where it
// cannot be read: the rest of the status does not depend on it.
func readNotices(ctx context.Context, s store.Store, doc *state.Document) *notice.Ledger {
	for _, r := range doc.Resources {
		if r.Notification != nil {
			if l, err := notices.Read(ctx, s); err == nil {
				return l
			}
			return nil
		}
	}
	return nil
}

// receivers are those whose deliveries do not go as they should.
func (v *View) receivers() []receiverJSON {
	if v.ledger == nil {
		return nil
	}
	var all []receiverJSON
	for _, addr := range slices.SortedFunc(maps.Keys(v.Doc.Resources), schema.Address.Compare) {
		n := v.Doc.Resources[addr].Notification
		if n == nil {
			continue
		}
		for _, to := range n.Receivers() {
			if f, failing := v.ledger.Receivers[notice.ReceiverName(addr, to)]; failing {
				all = append(all, receiverJSON{Notification: addr, Receiver: to, Waiting: len(v.ledger.Waiting(addr, to)), Since: f.Since, Failure: f.Text})
			}
		}
		if dropped := v.ledger.Dropped[addr]; dropped > 0 {
			all = append(all, receiverJSON{Notification: addr, Dropped: dropped})
		}
	}
	return all
}

// receiverTexts say which receivers cannot be told, and why.
func receiverTexts(v *View) []string {
	var texts []string
	for _, r := range v.receivers() {
		if r.Dropped > 0 {
			texts = append(texts, fmt.Sprintf("Notices: %d of %s were never delivered.", r.Dropped, r.Notification))
			continue
		}
		texts = append(texts, fmt.Sprintf("Notices: %s of %s cannot be told since %s, %d waiting: %s.",
			r.Receiver, r.Notification, r.Since.Local().Format(time.DateTime), r.Waiting, r.Failure))
	}
	return texts
}
