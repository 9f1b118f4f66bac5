package host

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// discarded takes answers.
type discarded struct{}

func (discarded) answer(*wire.Reply, [][]byte, bool) {}

func numbered(seq, acked uint64) *call { return &call{in: &wire.Call{Seq: seq, Acked: acked}} }

func result(size int) *answer { return &answer{reply: &wire.Reply{Result: make([]byte, size)}} }

func TestLedgerForgetsTheOldestReplies(t *testing.T) {
	l := newLedger(10_000)
	a, b := l.open("a", time.Now()), l.open("b", time.Now())
	for seq := range uint64(5) {
		for _, s := range []*session{a, b} {
			c := numbered(seq+1, 0)
			if v, _ := l.begin(s, c, discarded{}); v != dispositionNew {
				t.Fatalf("got %s, want new", v)
			}
			l.finish(c.entry, result(2000), 0, nil)
		}
	}
	if l.bytes > 10_000 {
		t.Errorf("got %d bytes, want at most 10,000", l.bytes)
	}
	for seq, want := range map[uint64]disposition{1: dispositionLost, 2: dispositionLost, 3: dispositionLost, 4: dispositionReplay, 5: dispositionReplay} {
		if v, _ := l.begin(b, numbered(seq, 0), discarded{}); v != want {
			t.Errorf("call %d of b: got %s, want %s", seq, v, want)
		}
	}
}

// What is kept for a caller is freed within a minute after its last connection, by a timer: nothing
// else may happen at the server. Its calls are not forgotten: one that is sent again does not run again.
func TestLedgerFreesAnswersOfCallersWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(maxKept)
		s := l.open("a", time.Now())
		again := l.open("a", time.Now())
		answered, running := numbered(7, 0), numbered(8, 0)
		l.begin(s, answered, discarded{})
		l.begin(s, running, discarded{})
		l.finish(answered.entry, result(10), 0, nil)
		l.close(s, time.Now())
		time.Sleep(time.Hour)
		if l.keptBytes() == 0 {
			t.Error("an answer was freed though the caller has a connection")
		}
		l.close(again, time.Now())
		l.close(l.open("never calls", time.Now()), time.Now())
		time.Sleep(answersLast - time.Second)
		if back := l.open("a", time.Now()); back != s || l.keptBytes() == 0 {
			t.Error("a caller who came back in time is not known")
		}
		l.close(s, time.Now())
		other := l.open("b", time.Now())
		l.begin(other, numbered(1, 0), discarded{})
		time.Sleep(30 * time.Second)
		l.close(other, time.Now())
		time.Sleep(30 * time.Second)
		bytes := l.keptBytes()
		l.mu.Lock()
		if bytes != 0 || l.kept.Len() != 0 || l.away.Len() != 1 {
			t.Errorf("a minute after its caller left there are %d bytes, %d answers, %d callers away; want b alone", bytes, l.kept.Len(), l.away.Len())
		}
		l.mu.Unlock()
		if calls := l.calls(); len(calls) != 2 {
			t.Errorf("got %d calls that run, want 2: they go on", len(calls))
		}
		l.finish(running.entry, result(10), 0, nil)
		if l.keptBytes() != 0 || len(s.entries) != 0 {
			t.Error("an answer was kept for a caller who had left")
		}
		for seq, want := range map[uint64]disposition{7: dispositionLost, 8: dispositionLost, 9: dispositionNew} {
			if v, _ := l.begin(l.open("a", time.Now()), numbered(seq, 0), discarded{}); v != want {
				t.Errorf("call %d of a caller who came back: got %s, want %s", seq, v, want)
			}
		}
		time.Sleep(time.Minute)
		l.mu.Lock()
		if l.expiry != nil {
			t.Error("the timer runs on for no caller")
		}
		l.mu.Unlock()
		l.close(l.open("c", time.Now()), time.Now())
		time.Sleep(sessionLasts)
		l.open("d", time.Now())
		if len(l.sessions) != 2 || l.left.Len() != 0 {
			t.Errorf("got %d callers after a day, %d without connections; want a and d", len(l.sessions), l.left.Len())
		}
	})
}

// Whatever a caller sends again, each call is new once, or again after a rejection,
// and an answer is that of its call.
func TestLedgerRunsEachCallOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(3000)
		s := l.open("a", time.Now())
		pending, ran := map[uint64]*call{}, map[uint64]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				seq := rapid.Uint64Range(1, 20).Draw(t, "seq")
				c := numbered(seq, rapid.Uint64Range(0, 20).Draw(t, "acked")*rapid.Uint64Range(0, 1).Draw(t, "acks"))
				v, a := l.begin(s, c, discarded{})
				if v == dispositionNew && (ran[seq] || pending[seq] != nil) {
					t.Fatalf("call %d is new a second time", seq)
				}
				if v == dispositionReplay && a.reply.GetIncarnation() != fmt.Sprint(seq) {
					t.Fatalf("call %d got the answer of %s", seq, a.reply.GetIncarnation())
				}
				if v == dispositionAwait && pending[seq] == nil {
					t.Fatalf("call %d awaits what does not run", seq)
				}
				if v == dispositionNew {
					pending[seq] = c
				}
			},
			"finish": func(t *rapid.T) {
				for seq, c := range pending {
					a := result(rapid.IntRange(0, 1500).Draw(t, "size"))
					a.reply.Incarnation = fmt.Sprint(seq)
					if rapid.Bool().Draw(t, "refused") {
						a.reply.Error = (&rpcerror.Error{Code: rpcerror.CodeBusy}).Wire()
					} else {
						ran[seq] = true
					}
					l.finish(c.entry, a, 0, nil)
					delete(pending, seq)
					return
				}
			},
			"": func(t *rapid.T) {
				sum := int64(0)
				for e := l.kept.Front(); e != nil; e = e.Next() {
					one := e.Value.(*entry)
					sum += size(one.answer)
					if s.entries[one.seq] != one {
						t.Fatalf("the answer of call %d is kept for no caller", one.seq)
					}
				}
				if sum != l.bytes || l.bytes > l.limit {
					t.Fatalf("got %d bytes, want %d, at most %d", l.bytes, sum, l.limit)
				}
			},
		})
	})
}
