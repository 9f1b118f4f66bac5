package bucket

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
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// impatient gives a stalled request up soon, and tries for long, since a busy
// machine's are now and then taken for such.
func impatient() client.Pace {
	t := clienttest.Quick()
	t.Stall, t.Patience = time.Second, 5*time.Minute
	return t
}

func TestEveryOperationSurvivesPassingFaults(t *testing.T) {
	blob := strings.Repeat("a bundle ", 3*clienttest.Chunk/9+1)
	operations := []struct {
		name string
		hits buckettest.Request
		do   func(ctx context.Context, b *Bucket) error
	}{
		{"get", buckettest.ReqGet, func(ctx context.Context, b *Bucket) error {
			object, err := b.Get(ctx, "state.json")
			return same(string(object.Data), "before", err)
		}},
		{"get of nothing", buckettest.ReqGet, func(ctx context.Context, b *Bucket) error {
			if _, err := b.Get(ctx, "none.json"); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("got %w, want ErrNotFound", err)
			}
			return nil
		}},
		{"swap", buckettest.ReqPut, func(ctx context.Context, b *Bucket) error { return swapped(ctx, b, "state.json", "after") }},
		{"create", buckettest.ReqPut, func(ctx context.Context, b *Bucket) error {
			if _, err := b.Put(ctx, "new.json", []byte("new"), store.Absent); err != nil {
				return err
			}
			return swapped(ctx, b, "new.json", "after")
		}},
		{"put of any", buckettest.ReqPut, func(ctx context.Context, b *Bucket) error {
			if _, err := b.Put(ctx, "state.json", []byte("any"), store.Any); err != nil {
				return err
			}
			return swapped(ctx, b, "state.json", "after")
		}},
		{"list", buckettest.ReqList, func(ctx context.Context, b *Bucket) error {
			list, err := b.List(ctx, "")
			return same(fmt.Sprint(len(list)), "1", err)
		}},
		{"delete", buckettest.ReqDelete, func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, "state.json") }},
		{"open", buckettest.ReqGet, func(ctx context.Context, b *Bucket) error { return readsAs(ctx, b, "state.json", "before") }},
		{"large upload, look", buckettest.ReqStat, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, blob) }},
		{"upload", buckettest.ReqPut, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, "small") }},
		{"large upload, begin", buckettest.ReqSession, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, blob) }},
		{"large upload, chunk", buckettest.ReqChunk, func(ctx context.Context, b *Bucket) error { return uploaded(ctx, b, blob) }},
	}
	for _, operation := range operations {
		t.Run(operation.name, func(t *testing.T) {
			t.Parallel() // stalls are waited for
			for _, f := range clienttest.PassingFaults() {
				tempo := clienttest.Quick()
				if f.Stall {
					tempo = impatient()
				}
				w := buckettest.New(t)
				b := opened(t, w, tempo)
				put(t, b, "state.json", "before", store.Absent)
				w.Inject(operation.hits, f, f)
				if err := operation.do(t.Context(), b); err != nil {
					t.Errorf("%s: %v", f.Name, err)
				}
				w.Left(t)
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
		{"another writer was faster", false, 1, store.ErrConflict},
		{"it happened and was replaced", true, 1, errUnsettled},
		{"two were faster", false, 2, errUnsettled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := buckettest.New(t)
			b, other := opened(t, w, clienttest.Quick()), opened(t, w, clienttest.Quick())
			gen := put(t, b, "state.json", "before", store.Absent)
			w.Inject(buckettest.ReqPut, clienttest.Fault{Happen: test.happen, Then: func() {
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

// A write is rejected for a generation that is the present one: it is made again,
// and no other writer is made up.
func TestBaselessConflicts(t *testing.T) {
	t.Parallel()
	for _, before := range []store.Generation{store.Absent, 1} {
		w := buckettest.New(t)
		b := opened(t, w, clienttest.Quick())
		if before != store.Absent {
			before = put(t, b, "state.json", "before", store.Absent)
		}
		w.Inject(buckettest.ReqPut, clienttest.Fault{Status: http.StatusPreconditionFailed}, clienttest.Fault{Status: http.StatusPreconditionFailed})
		gen, err := b.Put(t.Context(), "state.json", []byte("after"), before)
		if err != nil {
			t.Errorf("put over generation %d: %v", before, err)
		}
		if present := wantContent(t, b, "state.json", "after"); present != gen {
			t.Errorf("put returned generation %d and %d is there", gen, present)
		}
		w.Left(t)
		if _, err := b.Put(t.Context(), "state.json", []byte("late"), before); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a write over what has been replaced: %v, want ErrConflict", err)
		}
	}
}

func TestWriteThatWasGivenUpChangesNothingWhenItArrives(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"", "before"} {
		w := buckettest.New(t)
		b := opened(t, w, impatient())
		if first != "" {
			put(t, b, "hosts/a/0.json", first, store.Any)
		}
		w.Inject(buckettest.ReqPut, clienttest.Fault{Stall: true})
		put(t, b, "hosts/a/0.json", "one", store.Any)
		late := w.Requests(true)[0]
		put(t, b, "hosts/a/0.json", "two", store.Any)
		if reply := w.Serve(late); reply.Code != http.StatusPreconditionFailed {
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
	w := buckettest.New(t)
	tempo := impatient()
	var clients []*Bucket
	var unanswered atomic.Int64
	for range workers {
		cfg := configOf(w)
		cfg.HTTPClient.Transport = unansweredPuts(cfg.HTTPClient.Transport, &unanswered)
		b, err := open(t.Context(), cfg, tempo)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, b)
	}
	random := rand.New(rand.NewPCG(1, 2))
	w.Always(func(buckettest.Request) (clienttest.Fault, bool) {
		faults := clienttest.PassingFaults()
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
	w.Always(nil)
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
	// How many of them others replace before they can be settled is up to the
	// scheduler. A write that was answered is never open.
	if limit := int(unanswered.Load()); open > limit {
		t.Errorf("%d of %d increments could not be settled, and only %d writes had no answer", open, sure+open, limit)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// unansweredPuts counts the writes whose client does not hear whether they
// happened: by a fault, or because a busy machine answered too late.
func unansweredPuts(base http.RoundTripper, n *atomic.Int64) http.RoundTripper {
	return transportFunc(func(r *http.Request) (*http.Response, error) {
		response, err := base.RoundTrip(r)
		switch {
		case buckettest.KindOf(r) != buckettest.ReqPut:
		case err != nil, response.StatusCode == http.StatusRequestTimeout, response.StatusCode >= http.StatusInternalServerError:
			n.Add(1)
		default:
			response.Body = &countedBody{ReadCloser: response.Body, failed: n}
		}
		return response, err
	})
}

// countedBody counts the reply of which not everything arrives.
type countedBody struct {
	io.ReadCloser
	failed *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed.Add(1)
	}
	return n, err
}

func TestProblemThatDoesNotPass(t *testing.T) {
	t.Parallel()
	tempo := clienttest.Quick()
	tempo.Patience = 50 * time.Millisecond
	for name, do := range operations() {
		t.Run(name, func(t *testing.T) {
			w := buckettest.New(t)
			b := opened(t, w, tempo)
			w.Always(func(buckettest.Request) (clienttest.Fault, bool) {
				return clienttest.Fault{Status: 503, Body: clienttest.Busy}, true
			})
			err := do(t.Context(), b)
			if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
				t.Errorf("got %v, want an error that leaves everything open", err)
			} else if !strings.Contains(err.Error(), "try again later") || !strings.Contains(err.Error(), "gs://acme/rl/math/") {
				t.Errorf("%q does not say what to do with which object", err)
			}
			w.Always(nil)
		})
	}
}

func TestStallsEndWithTheContext(t *testing.T) {
	t.Parallel()
	lost := errors.New("the lease is lost")
	for name, do := range operations() {
		t.Run(name, func(t *testing.T) {
			w := buckettest.New(t)
			b := opened(t, w, clienttest.Quick())
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, lost)
			defer cancel()
			w.Always(func(buckettest.Request) (clienttest.Fault, bool) { return clienttest.Fault{Stall: true}, true })
			if err := do(ctx, b); !errors.Is(err, lost) {
				t.Errorf("got %v, want the context's cause", err)
			}
			w.Always(nil)
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

// Another writer finishes the same blob first.
func TestLargeUploadThatIsOvertaken(t *testing.T) {
	content := strings.Repeat("a bundle ", 3*clienttest.Chunk/9+1)
	w := buckettest.New(t)
	b, other := opened(t, w, clienttest.Quick()), opened(t, w, clienttest.Quick())
	var once sync.Once
	w.Always(func(r buckettest.Request) (f clienttest.Fault, faulty bool) {
		if r == buckettest.ReqChunk {
			once.Do(func() {
				f, faulty = clienttest.Fault{Status: 503, Then: func() {
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
	tempo := clienttest.Quick()
	tempo.Patience = 100 * time.Millisecond
	lost := errors.New("the lease is lost")
	for _, kind := range []buckettest.Request{buckettest.ReqSession, buckettest.ReqChunk} {
		w := buckettest.New(t)
		b := opened(t, w, tempo)
		upload := func(ctx context.Context) error {
			return b.Upload(ctx, "logs/large", io.LimitReader(zeros{}, 2*clienttest.Chunk))
		}
		w.Always(func(r buckettest.Request) (clienttest.Fault, bool) {
			return clienttest.Fault{Status: 503, Body: clienttest.Busy}, r == kind
		})
		if err := upload(t.Context()); err == nil || !strings.Contains(err.Error(), "try again later") {
			t.Errorf("%s: got %v, want what to do", kind, err)
		}
		for _, gone := range []int{http.StatusNotFound, http.StatusGone} {
			w.Always(func(r buckettest.Request) (clienttest.Fault, bool) { return clienttest.Answer(gone, ""), r == kind })
			if err := upload(t.Context()); err == nil || !strings.Contains(err.Error(), "try again") {
				t.Errorf("%s, session gone: got %v, want what to do", kind, err)
			}
		}
		w.Always(func(r buckettest.Request) (clienttest.Fault, bool) { return clienttest.Fault{Stall: true}, r == kind })
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, lost)
		defer cancel()
		if err := upload(ctx); !errors.Is(err, lost) {
			t.Errorf("%s: got %v, want the context's cause", kind, err)
		}
		w.Always(nil)
		if list, err := b.List(t.Context(), ""); err != nil || len(list) != 0 {
			t.Errorf("%s: left %v, %v, want nothing", kind, list, err)
		}
	}
}
