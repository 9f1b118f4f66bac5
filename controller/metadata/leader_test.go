package metadata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// puts counts the writes of a store that takes one a second.
type puts struct {
	*storetest.Memory
	mu    sync.Mutex
	times []time.Time
}

func (p *puts) WriteInterval() time.Duration { return time.Second }

func (p *puts) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	p.mu.Lock()
	p.times = append(p.times, time.Now())
	p.mu.Unlock()
	return p.Memory.Put(ctx, key, data, want)
}

func TestManyRegistrationsAreFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &puts{Memory: storetest.NewMemory()}
		r := newRegistrar(t, s, 1, accesstest.RunningJob("rl", "train", 1))
		defer r.lose()
		job := asJob(t, "rl", "train", 1)
		s.times = nil
		var all sync.WaitGroup
		for i := range 50 {
			for range 20 {
				name := fmt.Sprintf("x%d", i)
				all.Go(func() { r.mustRegister(job, t, &clusterapi.RegisterRequest{Name: name}) })
			}
			time.Sleep(100 * time.Millisecond)
		}
		all.Wait()
		for i := range s.times[1:] {
			if gap := s.times[i+1].Sub(s.times[i]); gap < time.Second {
				t.Errorf("writes %s apart, want a second", gap)
			}
		}
		if n := len(s.times); n < 2 || n > 7 {
			t.Errorf("1000 registrations in 5 s were %d writes, want about 6", n)
		}
	})
}

func TestAcknowledgedOnceSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate sync.Mutex
		memory := storetest.NewMemory()
		var fail error
		s := &storetest.Faulty{Store: memory, Before: func(op storetest.Op, _ string) error {
			gate.Lock()
			defer gate.Unlock()
			if op == storetest.OpPut {
				return fail
			}
			return nil
		}}
		r := newRegistrar(t, s, 1, accesstest.RunningJob("rl", "train", 1))
		defer r.lose()
		gate.Lock()
		fail = errors.New("disk full")
		gate.Unlock()
		done := make(chan error, 1)
		go func() {
			_, err := r.Register(asJob(t, "rl", "train", 1), &clusterapi.RegisterRequest{Name: "x", Address: "h:1"})
			done <- err
		}()
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("acknowledged (%v) though it is not saved", err)
		default:
		}
		gate.Lock()
		fail = nil
		gate.Unlock()
		if err := <-done; err != nil {
			t.Errorf("saved in the end: %v", err)
		}
		ctx, cancel := context.WithTimeout(asJob(t, "rl", "train", 1), time.Second)
		defer cancel()
		gate.Lock()
		fail = errors.New("disk full")
		gate.Unlock()
		if _, err := r.Register(ctx, &clusterapi.RegisterRequest{Name: "y", Address: "h:1"}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a caller that gives up gets %v", err)
		}
	})
}

// A write that happened although its reply was lost is no conflict.
func TestLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		lost := 0
		s := &storetest.Faulty{Store: memory, After: func(op storetest.Op, _ string) error {
			if op == storetest.OpPut && lost < 3 {
				lost++
				return errors.New("connection reset")
			}
			return nil
		}}
		r := newRegistrar(t, s, 1, accesstest.RunningJob("rl", "train", 1))
		defer r.lose()
		for i := range 5 {
			r.mustRegister(asJob(t, "rl", "train", 1), t, &clusterapi.RegisterRequest{Name: fmt.Sprint("x", i)})
		}
		if lost != 3 {
			t.Errorf("%d replies were lost, want 3", lost)
		}
	})
}

// What one leader acknowledged the next one knows; it forgets what ended
// meanwhile before it answers, and the old one writes nothing any more.
func TestNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		train, eval := asJob(t, "rl", "train", 1), asJob(t, "rl", "eval", 1)
		old := newRegistrar(t, s, 1, accesstest.RunningJob("rl", "train", 1), accesstest.RunningJob("rl", "eval", 1))
		defer old.lose()
		kept := old.mustRegister(train, t, &clusterapi.RegisterRequest{Name: "kept", RequestId: "r1", Metadata: map[string]string{"k": "v"}, Unique: true})
		old.mustRegister(eval, t, &clusterapi.RegisterRequest{Name: "gone"})

		next := &registrar{Server: New(s, slog.New(slog.DiscardHandler), time.Now), board: accesstest.NewFixed()}
		next.board.Show(1, accesstest.RunningJob("rl", "train", 1), accesstest.RunningJob("rl", "eval", 1)) // of an earlier term
		lease, lose := accesstest.NewLease(t, 2)
		defer lose()
		next.Lead(lease, next.board)
		synctest.Wait()
		if _, err := next.Lookup(train, &clusterapi.LookupRequest{Name: "kept"}); status.Code(err) != codes.Unavailable {
			t.Errorf("before the loop has looked: %v, want UNAVAILABLE", err)
		}
		next.board.Show(2, accesstest.RunningJob("rl", "train", 1), accesstest.EndedJob("rl", "eval", 1))
		synctest.Wait()
		got, err := next.Lookup(train, &clusterapi.LookupRequest{Name: "kept"})
		if err != nil || got.GetActorId() != kept || got.GetMetadata()["k"] != "v" {
			t.Errorf("the next leader finds %v, %v; want %s", got, err, kept)
		}
		if got := next.found(train, t, "gone"); got != "" {
			t.Errorf("%s of a job that ended meanwhile is there", got)
		}
		if again := next.mustRegister(train, t, &clusterapi.RegisterRequest{Name: "kept", RequestId: "r1"}); again != kept {
			t.Errorf("the same request is carried out again: %s, want %s", again, kept)
		}

		_, err = old.Register(train, &clusterapi.RegisterRequest{Name: "late", Address: "h:1"})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("the old leader answers %v, want UNAVAILABLE", err)
		}
		object, err := s.Get(t.Context(), store.EndpointsKey)
		if err != nil || strings.Contains(string(object.Data), "late") || !strings.Contains(string(object.Data), "kept") {
			t.Errorf("saved is %s, %v", object.Data, err)
		}
		if _, err := old.Register(train, &clusterapi.RegisterRequest{Name: "later", Address: "h:1"}); status.Code(err) != codes.Unavailable {
			t.Errorf("asked again the old leader answers %v", err)
		}
	})
}

// An old leader's write that comes between the next one's look and its first
// write was acknowledged, and so is known.
func TestWriteDuringTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		job := asJob(t, "rl", "train", 1)
		old := newRegistrar(t, memory, 1, accesstest.RunningJob("rl", "train", 1))
		defer old.lose()
		between := false
		s := &storetest.Faulty{Store: memory, Before: func(op storetest.Op, _ string) error {
			if op == storetest.OpPut && !between {
				between = true
				old.mustRegister(job, t, &clusterapi.RegisterRequest{Name: "x"})
			}
			return nil
		}}
		next := newRegistrar(t, s, 2, accesstest.RunningJob("rl", "train", 1))
		defer next.lose()
		if !between || next.found(job, t, "x") == "" {
			t.Error("what the old leader acknowledged is lost")
		}
	})
}

// A controller whose lease is older than what was written does not answer.
func TestOlderEpochStaysSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		newRegistrar(t, s, 5, accesstest.RunningJob("rl", "train", 1)).lose()
		stale := newRegistrar(t, s, 4, accesstest.RunningJob("rl", "train", 1))
		defer stale.lose()
		if _, err := stale.Lookup(asUser(t), &clusterapi.LookupRequest{Name: "x", Namespace: "rl"}); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want UNAVAILABLE", err)
		}
	})
}
