package bucket

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

// The service takes one write a second of one object.
func TestWritesOfOneObjectKeepTheirDistance(t *testing.T) {
	t.Parallel()
	w := buckettest.New(t)
	w.Interval = time.Second
	b := opened(t, w, client.ServicePace())
	began := time.Now()
	gen := put(t, b, "state.json", "0", store.Absent)
	gen = put(t, b, "state.json", "1", gen)
	put(t, b, "state.json", "2", gen)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("three writes took %v, want 2s at least", took)
	}
	if w.Rejected != 0 {
		t.Errorf("%d writes came too early", w.Rejected)
	}
}

// What another process has written is not known before the service reports so.
func TestSecondWriteWithinASecondIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := buckettest.New(t)
	w.Interval = time.Second
	one, two := opened(t, w, client.ServicePace()), opened(t, w, client.ServicePace())
	gen := put(t, one, "state.json", "one", store.Absent)
	gen = put(t, two, "state.json", "two", gen)
	for range 10 { // a busy machine may take the second from one to the other
		if w.Rejected > 0 {
			break
		}
		gen = put(t, one, "state.json", "one", gen)
		gen = put(t, two, "state.json", "two", gen)
	}
	if w.Rejected == 0 {
		t.Error("no second write was refused")
	}
	wantContent(t, one, "state.json", "two")
}

func TestPacedWriteHeedsItsContext(t *testing.T) {
	w := buckettest.New(t)
	tempo := clienttest.Quick()
	tempo.Interval = time.Hour
	b := opened(t, w, tempo)
	gen := put(t, b, "state.json", "one", store.Absent)
	put(t, b, "lease.json", "one", store.Absent) // another object does not wait that hour
	w.Count()
	lost := errors.New("the lease is lost")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, lost)
	defer cancel()
	if _, err := b.Put(ctx, "state.json", []byte("two"), gen); !errors.Is(err, lost) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if n := total(w.Count()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	// A write that lost does not count: the next one need not wait.
	fast := opened(t, w, tempo)
	for range 3 {
		_, err := fast.Put(t.Context(), "state.json", []byte("two"), gen+1)
		wantConflict(t, err)
	}
}

func TestPacers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pacers{interval: time.Second}
		began := time.Now()
		done := make(chan time.Duration, 5)
		for range 5 {
			go func() {
				own, err := l.enter(t.Context(), "state.json")
				if err != nil {
					t.Error(err)
					return
				}
				done <- time.Since(began)
				l.wrote(own)
				l.leave(own)
			}()
		}
		for i := range 5 {
			if got, want := <-done, time.Duration(i)*time.Second; got != want {
				t.Errorf("write %d: at %v, want %v", i, got, want)
			}
		}
		other, err := l.enter(t.Context(), "lease.json")
		if err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("another object: %v after %v", err, time.Since(began))
		}
		l.leave(other)
	})
}

func TestIdlePacersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pacers{interval: time.Second}
		busy, err := l.enter(t.Context(), "busy")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 * manyPacers {
			own, err := l.enter(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			l.wrote(own)
			l.leave(own)
			if i%manyPacers == manyPacers-1 {
				time.Sleep(2 * idlePacer)
			}
		}
		if n := len(l.byKey); n > manyPacers+1 {
			t.Errorf("%d pacers are remembered", n)
		}
		if l.byKey["busy"] != busy {
			t.Error("a pacer in use was forgotten")
		}
		l.leave(busy)
	})
}
