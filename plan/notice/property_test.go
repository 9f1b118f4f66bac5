package notice_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// history is a stack whose leader may die between any two writes and deliveries.
type history struct {
	*world

	savedLedger *notice.Ledger // what the store has
	savedDoc    *state.Document
	got         map[string]notice.Notice // by id, as receivers got it
	sent        map[string]int           // items of firing notices, by their cause
	wanted      map[string]bool          // what happened and was saved
	happened    map[string]bool          // and what was not saved yet
}

// TestNoNoticeIsLost: whatever happens to leaders, what the state records has reached the receiver in
// the end, and one id never stands for two contents.
func TestNoNoticeIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{
			world: newWorld(schema.NoticeJobFailed, schema.NoticeDrift), got: map[string]notice.Notice{}, sent: map[string]int{},
			wanted: map[string]bool{}, happened: map[string]bool{},
		}
		h.savedLedger, h.savedDoc = h.ledger, h.in.Doc.Clone()
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.in.Now = began.Add(time.Duration(i) * time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				h.change(i, rapid.Bool().Draw(t, "a job fails"))
			case 2:
				h.save(rapid.Bool().Draw(t, "dies in between"))
			case 3:
				h.deliver(t, rapid.Bool().Draw(t, "dies before the record"))
			case 4:
				h.die()
			case 5:
				h.ledger = notice.Decide(h.ledger, &h.in)
			}
		}
		h.ledger = notice.Decide(h.ledger, &h.in)
		h.save(false)
		for len(h.savedLedger.Notices) > 0 {
			h.deliver(t, false)
			h.save(false)
		}
		for what := range h.wanted {
			if h.sent[what] == 0 {
				t.Fatalf("%s was saved and never told", what)
			}
		}
	})
}

// change is a step in which a job fails or a slice is gone.
func (h *history) change(i int, failure bool) {
	h.in.Doc = h.in.Doc.Clone()
	name := fmt.Sprint("x", i)
	addr := schema.Address{Kind: schema.KindJob, Name: name}
	if failure {
		h.in.Doc.Jobs[addr] = &state.Job{ID: name, Spec: &schema.Job{Addr: addr}, Status: schema.JobFailed, Attempt: 1, EndedAt: h.in.Now, Reason: name}
	} else {
		h.in.Doc.Slices[name] = &state.Slice{} // as one that is to be created again
		h.in.Drift = []plan.Drift{{Kind: plan.DriftSliceGone, Slice: name, Found: name}}
	}
	h.happened[name] = true
	h.ledger = notice.Decide(h.ledger, &h.in)
	h.in.Drift = nil
}

// save writes the ledger, and then the state.
func (h *history) save(dies bool) {
	h.savedLedger = h.ledger
	if dies {
		h.die()
		return
	}
	h.savedDoc = h.in.Doc.Clone()
	maps.Copy(h.wanted, h.happened)
	h.happened = map[string]bool{}
}

// deliver sends the oldest notice that is saved.
func (h *history) deliver(t *rapid.T, dies bool) {
	waiting := h.savedLedger.Waiting(oncall, schema.ReceiverSlack)
	if len(waiting) == 0 {
		return
	}
	n := waiting[0].Notice
	if before, known := h.got[n.ID]; known && !reflect.DeepEqual(before, n) {
		t.Fatalf("%s is %+v and was %+v", n.ID, n, before)
	}
	if _, known := h.got[n.ID]; !known && n.Status == notice.Firing {
		for _, item := range n.Items {
			h.sent[item.Addr.Name+item.Slice]++
		}
	}
	h.got[n.ID] = n
	if dies {
		h.die()
		return
	}
	h.ledger = notice.Delivered(h.ledger, n.ID, schema.ReceiverSlack)
}

// die is the end of the leader: another one goes on with what is saved.
func (h *history) die() {
	h.ledger, h.in.Doc = h.savedLedger, h.savedDoc.Clone()
	h.happened = map[string]bool{}
	h.in.Epoch++
}
