package requestlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// billedStore counts as a bucket does, and loses replies of writes.
type billedStore struct {
	store.Store
	asked state.StoreRequests
	lose  bool
}

func (s *billedStore) Unwrap() store.Store           { return s.Store }
func (s *billedStore) Requests() state.StoreRequests { return s.asked }

func (s *billedStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	g, err := s.Store.Put(ctx, key, data, want)
	if s.lose && err == nil {
		return 0, errors.New("connection reset")
	}
	return g, err
}

func hostsThatAsked(hosts map[string]*state.HostReport) *plan.Observed {
	obs := &plan.Observed{Hosts: map[string][]plan.Host{}}
	for slice, r := range hosts {
		obs.Hosts[slice] = []plan.Host{{HostReport: *r}}
	}
	return obs
}

// TestRequestsAreRecordedOnce: with leaders that end, die and overlap, agents that start again, hosts
// that come and go, and replies that are lost, each request of hosts is in the record once, and each of a
// leader that it made before its last write.
func TestRequestsAreRecordedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		s := &billedStore{Store: storetest.NewMemory()}
		doc := &state.Document{Slices: map[string]*state.Slice{"a": {}, "b": {}}}
		now := time.Date(2026, 11, 28, 7, 0, 0, 0, time.UTC)
		hosts := map[string]*state.HostReport{}
		valid := func() error { return nil }
		l, former := New(s, valid), (*Log)(nil)
		var byHosts, byLeaders, lately uint64 // lately: of this leader, since its last write
		keep := func(l *Log) error { return l.Keep(ctx, doc, hostsThatAsked(hosts), now) }
		if err := keep(l); err != nil { // the record begins before there are hosts
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				n := rapid.Uint64Range(1, 9).Draw(t, "asked by the leader")
				s.asked.Writes += n
				lately += n
			case 2:
				name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host")
				n := rapid.Uint64Range(1, 9).Draw(t, "asked by it")
				if h := hosts[name]; h == nil || rapid.Bool().Draw(t, "its agent starts again") {
					if h != nil {
						if err := keep(l); err != nil { // what it asked after its last seen report is lost
							t.Fatal(err)
						}
						byLeaders, lately = byLeaders+lately, 0
					}
					hosts[name] = &state.HostReport{Slice: name, Boot: rapid.StringN(8, 8, 8).Draw(t, "boot"), HostUsage: state.HostUsage{Requests: &state.StoreRequests{Reads: n}}}
				} else {
					asked := h.Requests.Plus(state.StoreRequests{Reads: n})
					hosts[name] = &state.HostReport{Slice: name, Boot: h.Boot, HostUsage: state.HostUsage{Requests: &asked}}
				}
				byHosts += n
			case 3:
				if err := keep(l); err != nil {
					t.Fatal(err)
				}
				byLeaders, lately = byLeaders+lately, 0
			case 4:
				s.lose = true
				if err := keep(l); err == nil {
					t.Fatal("a lost reply is no error")
				}
				s.lose = false
				byLeaders, lately = byLeaders+lately, 0
			case 5: // another one leads; what the former one asked since its last write is lost
				former, l, lately = l, New(s, valid), 0
			case 6:
				if former != nil && former.known { // it writes although it leads no more: that fails, for the other one has written
					if keep(l) == nil && keep(former) == nil {
						t.Fatal("a former leader has written")
					}
					byLeaders, lately, former = byLeaders+lately, 0, nil
				}
			}
		}
		if err := keep(l); err != nil {
			t.Fatal(err)
		}
		byLeaders += lately
		log, err := Read(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		var sum state.StoreRequestDay
		for _, d := range accounting.RequestsOf(log, now.AddDate(-1, 0, 0), now.Add(time.Second)) {
			sum.Leader, sum.Hosts = sum.Leader.Plus(d.Leader), sum.Hosts.Plus(d.Hosts)
		}
		if sum.Hosts.Reads != byHosts || sum.Leader.Writes != byLeaders {
			t.Fatalf("recorded %d reads of hosts and %d writes of leaders, want %d and %d", sum.Hosts.Reads, sum.Leader.Writes, byHosts, byLeaders)
		}
	})
}

// A directory costs nothing: nothing is recorded of it.
func TestNoRequestsOfADirectory(t *testing.T) {
	s := storetest.NewMemory()
	l := New(s, func() error { return nil })
	if err := l.Keep(t.Context(), &state.Document{}, &plan.Observed{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if log, err := Read(t.Context(), s); err != nil || log != nil {
		t.Errorf("got %v, %v", log, err)
	}
}
