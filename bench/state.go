package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// applies measures apply of N resources, none of which reads another, on a
// store that takes one write a second, as a bucket does.
func (b *bench) applies() error {
	var base float64
	for _, n := range []int{250, 500, 1000, 2000} {
		_, r, err := b.one(oneApply, strconv.Itoa(n), "")
		if err != nil {
			return err
		}
		each := r.Took.Seconds() * 1000 / float64(n)
		if base == 0 {
			base = each
		}
		b.row(fmt.Sprintf("apply of %d simulated resources", n),
			fmt.Sprintf("%s, %.2f ms each; %d state writes, at least %s apart", sec(r.Took), each, r.Saves, sec(r.Apart)),
			"linear; writes >= 1 s apart", fmt.Sprintf("%.2fx the cost of each of 250; %d steps", each/base, r.Steps))
	}
	return nil
}

// applySimulated is one such apply. Took ends when everything runs; the last
// write of the state waits for its turn.
func applySimulated(ctx context.Context, n int) (result, error) {
	w := newWorld(time.Second)
	start := time.Now()
	s, steps, err := applied(ctx, w, n)
	if err != nil {
		return result{}, err
	}
	took := time.Since(start)
	s.Drain(ctx)
	if err := s.Save(ctx); err != nil {
		return result{}, err
	}
	r := result{Took: took, World: w.spent(), Steps: steps, Saves: len(w.saves)}
	for i := range w.saves[1:] {
		if apart := w.saves[i+1].Sub(w.saves[i]); r.Apart == 0 || apart < r.Apart {
			r.Apart = apart
		}
	}
	return r, nil
}

// applied is a Stepper whose n jobs of one task all run.
func applied(ctx context.Context, w *world, n int) (*apply.Stepper, int, error) {
	desired := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal}}}
	for i := range n {
		desired.Jobs = append(desired.Jobs, schema.Job{
			Addr:      schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)},
			Namespace: "work", Command: []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		})
	}
	s, err := apply.New(ctx, stepperOn(w, capacity{w}))
	if err != nil {
		return nil, 0, err
	}
	if err := s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		return nil, 0, err
	}
	steps, err := settle(ctx, s, apply.Scope{All: true})
	return s, steps, err
}

func stepperOn(s store.Store, p providers.Provider) apply.Config {
	return apply.Config{
		Store: s, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: p},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
	}
}

// states measures a large state: on disk, and a step over it in a bucket that
// finds nothing to do.
func (b *bench) states() error {
	n := b.opts.tasks
	dir, err := b.scratch("state", "")
	if err != nil {
		return err
	}
	_, r, err := b.one(oneState, strconv.Itoa(n), dir)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("state of %d tasks on the directory store, median of %d", n, rounds),
		fmt.Sprintf("load %s, save %s", ms(r.Load), ms(r.Save)), "together < 200 ms",
		fmt.Sprintf("together %s; %.1f MB, %d bytes each", ms(r.Load+r.Save), float64(r.Bytes)/1e6, r.Bytes/n))
	_, r, err = b.one(oneIdle, strconv.Itoa(n), "")
	if err != nil {
		return err
	}
	beside := fmt.Sprintf("%d objects in pages of 1000: the least is %d lists", 2*n, (2*n+999)/1000)
	b.row(fmt.Sprintf("step over %d tasks in a bucket, nothing to do", n), r.Idle.String(), "no put; one list for 1000 objects", beside)
	b.row(fmt.Sprintf("the same after %d hosts have reported", changedHosts), r.Change.String(),
		fmt.Sprintf("%d gets besides", changedHosts), "requests = pages + what changed")
	return nil
}

// rounds is how often loading and saving are measured.
const rounds = 9

// stateOnDisk loads and saves the state of n tasks as apply does.
func stateOnDisk(ctx context.Context, n int, dir string) (result, error) {
	w := newWorld(0)
	s, _, err := applied(ctx, w, n)
	if err != nil {
		return result{}, err
	}
	doc := *s.Document()
	d, err := store.CreateDir(dir)
	if err != nil {
		return result{}, err
	}
	r := result{}
	var loads, saves []cost
	generation := store.Absent
	for range rounds {
		start := time.Now()
		data, err := state.Encode(doc)
		if err != nil {
			return r, err
		}
		if generation, err = d.Put(ctx, store.StateKey, data, generation); err != nil {
			return r, err
		}
		saves = append(saves, cost{wall: time.Since(start)})
		r.Bytes = len(data)
		start = time.Now()
		if _, _, err := apply.LoadState(ctx, d); err != nil {
			return r, err
		}
		loads = append(loads, cost{wall: time.Since(start)})
	}
	r.Load, r.Save = middle(loads).wall, middle(saves).wall
	return r, nil
}

// requests counts those to a bucket, by what they are.
type requests map[string]int

func (r requests) String() string {
	var parts []string
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, fmt.Sprintf("%d %s", r[kind], kind))
		all += r[kind]
	}
	return fmt.Sprintf("%d requests (%s)", all, strings.Join(parts, ", "))
}

// bucketService is fake-gcs-server on a real connection, counted.
type bucketService struct {
	*httptest.Server
	fake *fakestorage.Server
	mu   sync.Mutex
	seen requests
}

func startBucket(objects []fakestorage.Object) (*bucketService, error) {
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, InitialObjects: objects, Writer: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("start fake-gcs-server: %w", err)
	}
	s := &bucketService{fake: fake, seen: requests{}}
	s.Server = httptest.NewServer(s)
	return s, nil
}

func (s *bucketService) stop() {
	s.Close()
	s.fake.Stop()
}

// ServeHTTP counts and passes on.
func (s *bucketService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := "get"
	switch {
	case r.Method != http.MethodGet:
		kind = strings.ToLower(r.Method)
	case strings.HasSuffix(r.URL.Path, "/o"):
		kind = "list"
	}
	s.mu.Lock()
	s.seen[kind]++
	s.mu.Unlock()
	s.fake.HTTPHandler().ServeHTTP(w, r)
}

// counted forgets what was counted and returns it.
func (s *bucketService) counted() requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = requests{}
	return seen
}

const (
	bucketName   = "bench"
	bucketPrefix = "stack/"
	changedHosts = 3
)

// idleOverBucket puts a stack whose n tasks all run into a bucket, and counts
// the requests of two steps: one that finds nothing changed, and one that finds
// that some hosts have reported.
func idleOverBucket(ctx context.Context, n int) (result, error) {
	w := newWorld(0)
	s, _, err := applied(ctx, w, n)
	if err != nil {
		return result{}, err
	}
	if err := s.Save(ctx); err != nil {
		return result{}, err
	}
	var objects []fakestorage.Object
	for key, o := range w.kept.Objects {
		objects = append(objects, fakestorage.Object{
			ObjectAttrs: fakestorage.ObjectAttrs{BucketName: bucketName, Name: bucketPrefix + key}, Content: o.Data,
		})
	}
	service, err := startBucket(objects)
	if err != nil {
		return result{}, err
	}
	defer service.stop()
	bucket, err := bucket.Open(ctx, bucket.Config{
		Bucket: bucketName, Prefix: bucketPrefix, Endpoint: service.URL + "/storage/v1/", HTTPClient: service.Client(),
	})
	if err != nil {
		return result{}, err
	}
	return stepsOver(ctx, w, bucket, service)
}

func stepsOver(ctx context.Context, w *world, bucket store.Store, service *bucketService) (result, error) {
	s, err := apply.New(ctx, stepperOn(bucket, capacity{w}))
	if err != nil {
		return result{}, err
	}
	// The first step reads everything, and writes the state under its epoch.
	if _, err := s.Step(ctx); err != nil {
		return result{}, err
	}
	if p := s.Last(); !p.Empty() {
		return result{}, fmt.Errorf("a stack that was applied has %d actions left", len(p.Actions))
	}
	s.KeepRequests(ctx) // which waits for what the first step writes beside the next one
	var r result
	service.counted()
	if _, err := s.Step(ctx); err != nil {
		return r, err
	}
	r.Idle = service.counted()
	hosts, err := bucket.List(ctx, store.HostsPrefix)
	if err != nil {
		return r, err
	}
	for _, h := range hosts[:min(changedHosts, len(hosts))] {
		if err := reportAgain(ctx, bucket, h.Key); err != nil {
			return r, err
		}
	}
	service.counted()
	if _, err := s.Step(ctx); err != nil {
		return r, err
	}
	r.Change = service.counted()
	return r, nil
}

// reportAgain is a heartbeat.
func reportAgain(ctx context.Context, s store.Store, key string) error {
	o, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	var r state.HostReport
	if err := json.NewDecoder(bytes.NewReader(o.Data)).Decode(&r); err != nil {
		return err
	}
	r.Seq++
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, key, data, store.Any)
	return err
}
