package actorrpc

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// Wait returns as many calls as it is asked for, in order, once they have ended.
func TestWait(t *testing.T) {
	tests := []struct {
		name     string
		released []uint64 // calls that have ended, numbered from 1 on
		n        int
		timeout  time.Duration
		want     []int // results of those that are returned; that of call 2 is an error
		err      error
	}{
		{"none", nil, 0, time.Second, nil, nil},
		{"the first to end", []uint64{3}, 1, time.Second, []int{3}, nil},
		{"in order", []uint64{4, 1, 3}, 3, time.Second, []int{1, 3, 4}, nil},
		{"no more than that", []uint64{4, 1, 3}, 2, time.Second, []int{1, 3}, nil},
		{"one that failed", []uint64{2}, 1, time.Second, []int{0}, nil},
		{"too late", []uint64{4}, 2, time.Second, []int{4}, context.DeadlineExceeded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, futures := mutedCalls(t, 4)
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				for _, seq := range test.released {
					w.processes[home].release(seq)
				}
				synctest.Wait()
				ended, others, err := Wait(ctx, test.n, futures...)
				if !errors.Is(err, test.err) || len(ended)+len(others) != len(futures) {
					t.Errorf("got %d and %d calls, %v; want all %d, %v", len(ended), len(others), err, len(futures), test.err)
				}
				var got []int
				for _, f := range ended {
					n, _ := f.Result(t.Context())
					got = append(got, n)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("results are %v, want %v", got, test.want)
				}
			})
		})
	}
}

// mutedCalls are calls of "add" with 1 and so on, whose replies are withheld. That with 2 fails.
func mutedCalls(t *testing.T, count int) (*world, []*Future[int]) {
	t.Helper()
	w := newWorld(t)
	p := w.start(home)
	p.mute = true
	p.answer = func(c *wire.Call) *wire.Reply {
		if argument(t, c) != 2 {
			return nil
		}
		return &wire.Reply{Error: (&rpcerror.Error{Code: rpcerror.CodeApplication, Message: "no", Ran: true}).Wire()}
	}
	client := w.client(resolverAt(t, w, home), Config{})
	h, err := client.Lookup(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	var futures []*Future[int]
	for n := 1; n <= count; n++ {
		futures = append(futures, Go[int](t.Context(), h, "add", n))
	}
	synctest.Wait()
	return w, futures
}

// Calls that end while others are waited for count, too.
func TestWaitForWhatEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, futures := mutedCalls(t, 4)
		go func() {
			for _, seq := range []uint64{3, 1} {
				time.Sleep(time.Second)
				w.processes[home].release(seq)
			}
		}()
		began := time.Now()
		ended, others, err := Wait(t.Context(), 2, futures...)
		if err != nil || !slices.Equal(ended, []*Future[int]{futures[0], futures[2]}) || !slices.Equal(others, []*Future[int]{futures[1], futures[3]}) {
			t.Errorf("got %v, %v, %v", ended, others, err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %s, want 2s", took)
		}
		if _, _, err := Wait(t.Context(), 5, futures...); err == nil {
			t.Error("5 of 4 calls are to end: want an error")
		}
	})
}
