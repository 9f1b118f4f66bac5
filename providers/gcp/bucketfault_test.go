package gcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// impatient gives a stalled request up soon, and tries for long, since a busy
// machine's are now and then taken for such.
func impatient() tempo {
	t := quick()
	t.stall, t.patience = 500*time.Millisecond, 2*time.Minute
	return t
}

const busy = `{"error":{"code":503,"message":"We encountered an internal error. Please try again."}}`

func passingFaults() []fault {
	return []fault{
		{name: "503 before", status: 503, body: busy},
		{name: "503 after it happened", status: 503, body: busy, happen: true},
		{name: "500", status: 500},
		{name: "408", status: 408},
		{name: "429", status: 429},
		{name: "connection lost before"},
		{name: "reply lost", happen: true},
		{name: "stalled before", stall: true},
		{name: "stalled after it happened", stall: true, happen: true},
	}
}

func TestEveryOperationSurvivesPassingFaults(t *testing.T) {
	blob := strings.Repeat("a bundle ", 3*chunk/9+1)
	operations := []struct {
		name string
		hits request
		do   func(ctx context.Context, b *Bucket) error
	}{
		{"get", reqGet, func(ctx context.Context, b *Bucket) error {
			object, err := b.Get(ctx, "state.json")
			return same(string(object.Data), "before", err)
		}},
		{"get of nothing", reqGet, func(ctx context.Context, b *Bucket) error {
			if _, err := b.Get(ctx, "none.json"); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("got %w, want ErrNotFound", err)
			}
			return nil
		}},
		{"swap", reqPut, func(ctx context.Context, b *Bucket) error { return swapped(ctx, b, "state.json", "after") }},
		{"create", reqPut, func(ctx context.Context, b *Bucket) error {
			if _, err := b.Put(ctx, "new.json", []byte("new"), store.Absent); err != nil {
				return err
			}
			return swapped(ctx, b, "new.json", "after")
		}},
		{"put of any", reqPut, func(ctx context.Context, b *Bucket) error {
			if _, err := b.Put(ctx, "state.json", []byte("any"), store.Any); err != nil {
				return err
			}
			return swapped(ctx, b, "state.json", "after")
		}},
		{"list", reqList, func(ctx context.Context, b *Bucket) error {
			list, err := b.List(ctx, "")
			return same(fmt.Sprint(len(list)), "1", err)
		}},
		{"delete", reqDelete, func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, "state.json") }},
		{"open", reqGet, func(ctx context.Context, b *Bucket) error { return readsAs(ctx, b, "state.json", "before") }},
		{"large upload, look", reqStat, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, blob) }},
		{"upload", reqPut, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, "small") }},
		{"large upload, begin", reqSession, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, blob) }},
		{"large upload, chunk", reqChunk, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, blob) }},
	}
	for _, operation := range operations {
		t.Run(operation.name, func(t *testing.T) {
			t.Parallel() // stalls are waited for
			for _, f := range passingFaults() {
				tempo := quick()
				if f.stall {
					tempo = impatient()
				}
				w := newWire(t)
				b := w.open(t, tempo)
				put(t, b, "state.json", "before", store.Absent)
				w.inject(operation.hits, f, f)
				if err := operation.do(t.Context(), b); err != nil {
					t.Errorf("%s: %v", f.name, err)
				}
				w.left(t)
			}
		})
	}
}

func same(got, want string, err error) error {
	if err == nil && got != want {
		return fmt.Errorf("got %.40q, want %.40q", got, want)
	}
	return err
}

// swapped writes over what is there, which takes that the generation is known.
func swapped(ctx context.Context, b *Bucket, key, data string) error {
	object, err := b.Get(ctx, key)
	if err != nil {
		return err
	}
	gen, err := b.Put(ctx, key, []byte(data), object.Generation)
	if err != nil {
		return err
	}
	if object, err = b.Get(ctx, key); err == nil && object.Generation != gen {
		return fmt.Errorf("put returned generation %d and %d is there", gen, object.Generation)
	}
	return same(string(object.Data), data, err)
}

func uploaded(ctx context.Context, b *Bucket, content string) error {
	sum := sha256.Sum256([]byte(content))
	key := store.BundleKey(hex.EncodeToString(sum[:]))
	if err := b.Upload(ctx, key, strings.NewReader(content)); err != nil {
		return err
	}
	return readsAs(ctx, b, key, content)
}

func readsAs(ctx context.Context, b *Bucket, key, want string) error {
	r, err := b.Open(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return same(string(data), want, err)
}

// The reply is lost, and before the write is tried again others write.
func TestLostReplies(t *testing.T) {
	tests := []struct {
		name   string
		happen bool // the write whose reply is lost
		others int  // writes by others
		want   error
	}{
		{"it happened", true, 0, nil},
		{"it did not happen", false, 0, nil},
		{"somebody was faster", false, 1, store.ErrConflict},
		{"it happened and was replaced", true, 1, errUnsettled},
		{"two were faster", false, 2, errUnsettled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWire(t)
			b, other := w.open(t, quick()), w.open(t, quick())
			gen := put(t, b, "state.json", "before", store.Absent)
			w.inject(reqPut, fault{happen: test.happen, then: func() {
				for i := range test.others {
					if err := swapped(t.Context(), other, "state.json", strconv.Itoa(i)); err != nil {
						t.Error(err)
					}
				}
			}})
			got, err := b.Put(t.Context(), "state.json", []byte("mine"), gen)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if test.want == nil {
				if present := wantContent(t, b, "state.json", "mine"); present != got {
					t.Errorf("put returned generation %d and %d is there", got, present)
				}
				return
			}
			if errors.Is(err, store.ErrConflict) != errors.Is(test.want, store.ErrConflict) {
				t.Errorf("got %v: an open question must not be called a conflict", err)
			}
			wantContent(t, b, "state.json", strconv.Itoa(test.others-1))
			// For an object of one writer it makes no difference: the last one counts.
			put(t, b, "state.json", "mine", store.Any)
			wantContent(t, b, "state.json", "mine")
		})
	}
}

// A write is refused for a generation that is the present one: it is made again,
// and no other writer is made up.
func TestBaselessConflicts(t *testing.T) {
	t.Parallel()
	for _, before := range []store.Generation{store.Absent, 1} {
		w := newWire(t)
		b := w.open(t, quick())
		if before != store.Absent {
			before = put(t, b, "state.json", "before", store.Absent)
		}
		w.inject(reqPut, fault{status: http.StatusPreconditionFailed}, fault{status: http.StatusPreconditionFailed})
		gen, err := b.Put(t.Context(), "state.json", []byte("after"), before)
		if err != nil {
			t.Errorf("put over generation %d: %v", before, err)
		}
		if present := wantContent(t, b, "state.json", "after"); present != gen {
			t.Errorf("put returned generation %d and %d is there", gen, present)
		}
		w.left(t)
		if _, err := b.Put(t.Context(), "state.json", []byte("late"), before); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a write over what has been replaced: %v, want ErrConflict", err)
		}
	}
}

func TestWriteThatWasGivenUpChangesNothingWhenItArrives(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"", "before"} {
		w := newWire(t)
		b := w.open(t, impatient())
		if first != "" {
			put(t, b, "hosts/a/0.json", first, store.Any)
		}
		w.inject(reqPut, fault{stall: true})
		put(t, b, "hosts/a/0.json", "one", store.Any)
		late := w.requests(true)[0]
		put(t, b, "hosts/a/0.json", "two", store.Any)
		if reply := w.serve(late); reply.Code != http.StatusPreconditionFailed {
			t.Errorf("the late request got %d, want 412", reply.Code)
		}
		wantContent(t, b, "hosts/a/0.json", "two")
	}
}

// Increments have no nonce: a write that is taken for lost, or for another's,
// shows in the sum.
func TestIncrementsUnderFaults(t *testing.T) {
	t.Parallel()
	const workers, times = 6, 12
	w := newWire(t)
	tempo := impatient()
	var clients []*Bucket
	for range workers {
		clients = append(clients, w.open(t, tempo))
	}
	random := rand.New(rand.NewPCG(1, 2))
	w.always(func(request) (fault, bool) {
		faults := passingFaults()
		return faults[random.IntN(len(faults))], random.IntN(8) == 0
	})
	var wg sync.WaitGroup
	var unsettled, done [workers]int
	for i, client := range clients {
		wg.Go(func() {
			for range times {
				err := storetest.Increment(t.Context(), client, "counter.json")
				switch {
				case err == nil:
					done[i]++
				case errors.Is(err, errUnsettled):
					unsettled[i]++
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	w.always(nil)
	object, err := clients[0].Get(t.Context(), "counter.json")
	if err != nil {
		t.Fatal(err)
	}
	sure, open := 0, 0
	for i := range workers {
		sure, open = sure+done[i], open+unsettled[i]
	}
	if sum, err := strconv.Atoi(string(object.Data)); err != nil || sum < sure || sum > sure+open {
		t.Errorf("sum %s, %v, want %d and up to %d that said they do not know", object.Data, err, sure, open)
	}
	if open > sure/4 {
		t.Errorf("%d of %d increments could not be settled", open, sure+open)
	}
}

func TestTroubleThatDoesNotPass(t *testing.T) {
	t.Parallel()
	tempo := quick()
	tempo.patience = 50 * time.Millisecond
	for name, do := range operations() {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			b := w.open(t, tempo)
			w.always(func(request) (fault, bool) { return fault{status: 503, body: busy}, true })
			err := do(t.Context(), b)
			if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
				t.Errorf("got %v, want an error that leaves everything open", err)
			} else if !strings.Contains(err.Error(), "try again later") || !strings.Contains(err.Error(), "gs://acme/rl/math/") {
				t.Errorf("%q does not say what to do with which object", err)
			}
			w.always(nil)
		})
	}
}

func TestStallsEndWithTheContext(t *testing.T) {
	t.Parallel()
	lost := errors.New("the lease is lost")
	for name, do := range operations() {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			b := w.open(t, quick())
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, lost)
			defer cancel()
			w.always(func(request) (fault, bool) { return fault{stall: true}, true })
			if err := do(ctx, b); !errors.Is(err, lost) {
				t.Errorf("got %v, want the context's cause", err)
			}
			w.always(nil)
		})
	}
}

// operations are all that send a request.
func operations() map[string]func(context.Context, *Bucket) error {
	return map[string]func(context.Context, *Bucket) error{
		"get":  func(ctx context.Context, b *Bucket) error { _, err := b.Get(ctx, "state.json"); return err },
		"list": func(ctx context.Context, b *Bucket) error { _, err := b.List(ctx, "hosts/"); return err },
		"list several": func(ctx context.Context, b *Bucket) error {
			_, err := b.List(ctx, "hosts/", "assign/")
			return err
		},
		"list versions": func(ctx context.Context, b *Bucket) error { _, err := b.Versions(ctx, "state.json"); return err },
		"get a version": func(ctx context.Context, b *Bucket) error { _, err := b.GetVersion(ctx, "state.json", 42); return err },
		"delete":        func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, "state.json") },
		"open":          func(ctx context.Context, b *Bucket) error { _, err := b.Open(ctx, "state.json"); return err },
		"upload":        func(ctx context.Context, b *Bucket) error { return b.Upload(ctx, "logs/x", strings.NewReader("x")) },
		"put": func(ctx context.Context, b *Bucket) error {
			_, err := b.Put(ctx, "new.json", nil, store.Absent)
			return err
		},
		"put of any": func(ctx context.Context, b *Bucket) error {
			_, err := b.Put(ctx, "new.json", nil, store.Any)
			return err
		},
		"put of some": func(ctx context.Context, b *Bucket) error { _, err := b.Put(ctx, "state.json", nil, 42); return err },
	}
}

// Somebody else finishes the same blob first.
func TestLargeUploadThatIsOvertaken(t *testing.T) {
	content := strings.Repeat("a bundle ", 3*chunk/9+1)
	w := newWire(t)
	b, other := w.open(t, quick()), w.open(t, quick())
	var once sync.Once
	w.always(func(r request) (f fault, faulty bool) {
		if r == reqChunk {
			once.Do(func() {
				f, faulty = fault{status: 503, then: func() {
					if err := uploaded(t.Context(), other, content); err != nil {
						t.Error(err)
					}
				}}, true
			})
		}
		return f, faulty
	})
	if err := uploaded(t.Context(), b, content); err != nil {
		t.Error(err)
	}
	if list, err := b.List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v, want one blob", list, err)
	}
}

func TestLargeUploadThatCannotGoOn(t *testing.T) {
	t.Parallel()
	tempo := quick()
	tempo.patience = 100 * time.Millisecond
	lost := errors.New("the lease is lost")
	for _, kind := range []request{reqSession, reqChunk} {
		w := newWire(t)
		b := w.open(t, tempo)
		upload := func(ctx context.Context) error {
			return b.Upload(ctx, "logs/large", io.LimitReader(zeros{}, 2*chunk))
		}
		w.always(func(r request) (fault, bool) { return fault{status: 503, body: busy}, r == kind })
		if err := upload(t.Context()); err == nil || !strings.Contains(err.Error(), "try again later") {
			t.Errorf("%s: got %v, want what to do", kind, err)
		}
		for _, gone := range []int{http.StatusNotFound, http.StatusGone} {
			w.always(func(r request) (fault, bool) { return answer(gone, ""), r == kind })
			if err := upload(t.Context()); err == nil || !strings.Contains(err.Error(), "try again") {
				t.Errorf("%s, session gone: got %v, want what to do", kind, err)
			}
		}
		w.always(func(r request) (fault, bool) { return fault{stall: true}, r == kind })
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, lost)
		defer cancel()
		if err := upload(ctx); !errors.Is(err, lost) {
			t.Errorf("%s: got %v, want the context's cause", kind, err)
		}
		w.always(nil)
		if list, err := b.List(t.Context(), ""); err != nil || len(list) != 0 {
			t.Errorf("%s: left %v, %v, want nothing", kind, list, err)
		}
	}
}
