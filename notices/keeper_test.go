package notices_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// leading is a leader of a stack with one notification.
type leading struct {
	*notices.Keeper

	store store.Store
	doc   *state.Document
	stop  func()
}

// lead has a process lead, under an epoch.
func lead(t *testing.T, s store.Store, epoch uint64, doc *state.Document, deliver bool) *leading {
	t.Helper()
	k := notices.Open(t.Context(), notices.Config{
		Store: s, Epoch: epoch, Valid: func() error { return nil }, Workspace: "default", Reveal: reveal, Log: slog.New(slog.DiscardHandler),
		Leader: notice.Leader{Host: "h", PID: int(epoch)}, HTTP: 30 * time.Second,
		Backoff: func(int) time.Duration { return time.Millisecond },
	})
	l := &leading{Keeper: k, store: s, doc: doc, stop: func() {}}
	if deliver {
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { k.Deliver(ctx) })
		l.stop = func() { cancel(); done.Wait() }
		t.Cleanup(l.stop)
	}
	return l
}

func stackOf(to ...*receiver) *state.Document {
	doc := &state.Document{Lineage: "stack", Resources: map[schema.Address]state.Resource{}, Jobs: map[schema.Address]*state.Job{}}
	for i, r := range to {
		n := &schema.Notification{
			Addr: schema.Address{Kind: schema.KindNotification, Name: fmt.Sprint("n", i)}, On: schema.NoticeKinds(), PendingAfter: schema.DefaultPendingAfter, BudgetAt: 1,
			Webhook: &schema.WebhookReceiver{URL: schema.Secret(r.URL + "/" + secretPath)},
		}
		doc.Resources[n.Addr] = state.Resource{Notification: n}
	}
	return doc
}

// fails has a job fail, and saves what is to be told of that.
func (l *leading) fails(t *testing.T, name string) {
	t.Helper()
	addr := schema.Address{Kind: schema.KindJob, Name: name}
	l.doc = l.doc.Clone()
	l.doc.Jobs[addr] = &state.Job{ID: name, Spec: &schema.Job{Addr: addr}, Status: schema.JobFailed, Attempt: 1, EndedAt: time.Now(), Reason: "exit status 3"}
	l.Note(&plan.Plan{}, l.doc, time.Now().UTC())
	if err := l.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A leader that dies after it has recorded a notice and before it has sent it leaves it to the next one.
func TestDeathBetweenDecisionAndDelivery(t *testing.T) {
	s, r := storetest.NewMemory(), newReceiver(t)
	first := lead(t, s, 1, stackOf(r), false)
	first.fails(t, "a")
	lead(t, s, 2, first.doc, true).Note(&plan.Plan{}, first.doc, time.Now().UTC())
	if got := r.next(t); got.ID != "stack-1-1" || got.Title != "Failed: job.a" {
		t.Errorf("got %+v, want the notice that the first leader recorded", got)
	}
}

// A leader that dies after a delivery and before its record has the notice sent again, the same.
func TestDeathBetweenDeliveryAndRecord(t *testing.T) {
	var full atomic.Bool
	memory, r := storetest.NewMemory(), newReceiver(t)
	s := &storetest.Faulty{Store: memory, Before: func(op storetest.Op, _ string) error {
		if full.Load() && op == storetest.OpPut {
			return errors.New("the disk is full")
		}
		return nil
	}}
	first := lead(t, s, 1, stackOf(r), true)
	r.answer = func(notice.Notice) int { full.Store(true); return http.StatusOK } // what was taken cannot be recorded
	first.fails(t, "a")
	once := r.next(t)
	first.stop()
	full.Store(false)
	r.mu.Lock()
	r.answer = func(notice.Notice) int { return http.StatusOK }
	r.mu.Unlock()
	second := lead(t, memory, 2, first.doc, true)
	second.Note(&plan.Plan{}, first.doc, time.Now().UTC())
	again := r.next(t)
	if fmt.Sprint(once) != fmt.Sprint(again) {
		t.Errorf("got %+v\nand then %+v, want the same", once, again)
	}
	second.fails(t, "b")
	for r.next(t).ID == once.ID { // the leader has changed, and b has failed: what comes now is new
		t.Error("a notice that was recorded as taken came again")
	}
}

// The steps of a loop are as fast beside receivers that hang as without any, and others are told.
func TestHangingReceiverHoldsUpNothing(t *testing.T) {
	hangs, works := newReceiver(t), newReceiver(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	entered := make(chan struct{}, 1000)
	hangs.answer = func(notice.Notice) int { entered <- struct{}{}; <-release; return http.StatusOK }
	l := lead(t, storetest.NewMemory(), 1, stackOf(hangs, works), true)
	l.fails(t, "first")
	<-entered // it hangs from now on
	works.next(t)
	for i := range 50 {
		l.fails(t, fmt.Sprint("x", i)) // returns, although the receiver does not
		works.next(t)
	}
	if n := len(entered); n > 0 {
		t.Errorf("the receiver that hangs was given %d more notices at the same time", n)
	}
	ledger, err := notices.Read(t.Context(), l.store)
	if err != nil || len(ledger.Waiting(schema.Address{Kind: schema.KindNotification, Name: "n0"}, schema.ReceiverWebhook)) != 51 {
		t.Errorf("got %d notices that wait, %v, want 51 of the receiver that hangs", len(ledger.Notices), err)
	}
}

// A message that a receiver rejects again and again does not keep the next ones from it, and a failure
// is an event without secrets.
func TestRejectedMessageIsDropped(t *testing.T) {
	r := newReceiver(t)
	r.answer = func(n notice.Notice) int {
		if n.Title == "Failed: job.bad" {
			return http.StatusBadRequest
		}
		return http.StatusOK
	}
	l := lead(t, storetest.NewMemory(), 1, stackOf(r), true)
	l.fails(t, "bad")
	l.fails(t, "good")
	for r.next(t).Title != "Failed: job.good" {
	}
	events := l.Events()
	texts := ""
	for _, e := range events {
		texts += e.Text + "\n"
		if e.Kind != state.EventNotice || e.Addr.Name != "n0" {
			t.Errorf("got event %+v", e)
		}
	}
	if !strings.Contains(texts, "rejects \"Failed: job.bad\", which is not sent again: it answers with status 400") || strings.Contains(texts, "s3cret") {
		t.Errorf("got events:\n%s", texts)
	}
	if ledger, err := notices.Read(t.Context(), l.store); err != nil || ledger.Dropped[schema.Address{Kind: schema.KindNotification, Name: "n0"}] != 1 {
		t.Errorf("got ledger %+v, %v, want one dropped", ledger, err)
	}
}

// A former leader does not write over what the next one has recorded.
func TestFormerLeaderIsFenced(t *testing.T) {
	s, r := storetest.NewMemory(), newReceiver(t)
	former := lead(t, s, 1, stackOf(r), false)
	former.fails(t, "a")
	next := lead(t, s, 2, former.doc, false)
	next.fails(t, "b")
	former.Note(&plan.Plan{Drift: []plan.Drift{{Kind: plan.DriftSliceGone, Slice: "x"}}}, former.doc, time.Now().UTC())
	if err := former.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "another process leads") {
		t.Errorf("the former leader's save: got %v, want that another process leads", err)
	}
	ledger, err := notices.Read(t.Context(), s)
	if err != nil || ledger.Epoch != 2 || len(ledger.Notices) < 2 {
		t.Errorf("got %+v, %v, want what the second leader wrote", ledger, err)
	}
}

// A ledger that is damaged is begun anew, and no id comes twice.
func TestDamagedLedger(t *testing.T) {
	s, r := storetest.NewMemory(), newReceiver(t)
	first := lead(t, s, 1, stackOf(r), false)
	first.fails(t, "a")
	if _, err := s.Put(t.Context(), store.NoticesKey, []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	lead(t, s, 2, first.doc, true).fails(t, "b")
	if got := r.next(t); got.ID != "stack-2-1" {
		t.Errorf("got id %s, want one of the second leader", got.ID)
	}
}

// A stack without notifications has no ledger.
func TestNothingIsWrittenWithoutNotifications(t *testing.T) {
	s := storetest.NewMemory()
	lead(t, s, 1, stackOf(), false).fails(t, "a")
	if _, err := s.Get(t.Context(), store.NoticesKey); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want no object", err)
	}
}
