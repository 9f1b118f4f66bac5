package rehearse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/schema"
)

var errKilled = errors.New("killed")

// killer stands between a provider and the cloud, and kills the process that it
// serves at one call: before the cloud hears of it, or when it has done what was
// asked and before its answer arrives. Nothing of that process is served any more.
type killer struct {
	next http.Handler
	at   int  // the number of the call, 0: none
	late bool // after the call has been done
	kill context.CancelCauseFunc

	mu      sync.Mutex
	calls   []string // so far; reads in a row are one
	reading bool
	dead    bool
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !k.reaches(r):
		k.next.ServeHTTP(w, r)
	case k.late:
		k.next.ServeHTTP(httptest.NewRecorder(), r)
		fallthrough
	default:
		k.kill(errKilled)
		panic(http.ErrAbortHandler)
	}
}

// reaches counts a call and reports whether it is the last one.
func (k *killer) reaches(r *http.Request) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		panic(http.ErrAbortHandler)
	}
	read := isRead(r)
	if read && k.reading {
		return false
	}
	k.reading = read
	k.calls = append(k.calls, r.Method+" "+r.URL.Path)
	k.dead = len(k.calls) == k.at
	return k.dead
}

func isRead(r *http.Request) bool {
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	return r.Method == http.MethodGet || strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Get")
}

// serve gives the killer a port of its own.
func (k *killer) serve(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: k, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// oneOfEach has a slice of every kind that is made by other calls than the rest.
func oneOfEach() schema.Desired {
	d := training(4, "v5litepod-16", "us-west4-a", "us-central1-a")
	shapes := []func(*schema.Resources){
		func(*schema.Resources) {}, // a node
		func(r *schema.Resources) { r.Cloud.Provisioning = schema.ProvisioningQueued },
		func(r *schema.Resources) { // a group of machines
			r.TPU, r.Zones, r.Cloud.Engine = "v5p-32", []string{"us-central1-a"}, schema.EngineGCE
		},
		func(r *schema.Resources) { r.TPU, r.CPU, r.Memory, r.Preemptible = "", 4, 16<<30, false },
	}
	for i, shape := range shapes {
		shape(&d.Jobs[i].Resources)
	}
	return d
}

// life is an apply until everything runs, and a destroy until nothing is left.
type life struct {
	*rehearsal
	t *testing.T
}

// lives carries a life through, with one process that is killed and another one
// that goes on, if need be. It returns the calls that the first one made.
func lives(t *testing.T, at int, late bool) []string {
	t.Helper()
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	k := &killer{at: at, late: late, kill: kill}
	var endpoint string
	cfg := Config{
		Desired: oneOfEach(), Scenario: builtIn(t, ScenarioCalm).Cloud, Seed: 1,
		connect: func(ctx context.Context, r *rehearsal) (providers.Provider, error) {
			if endpoint == "" {
				if err := r.emulator.Start(ctx, "127.0.0.1:0"); err != nil {
					return nil, err
				}
				k.next = r.emulator.Handler()
				endpoint = k.serve(t)
			} else {
				endpoint = r.emulator.URL() // the second process
			}
			return gcp.New(ctx, gcp.Config{
				Project: r.project(), Endpoint: endpoint, Now: r.clock.Now, Backoff: retryAfter,
			})
		},
	}
	r, err := open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	l := life{r, t}
	l.through(ctx, r.cfg.Desired, func() bool { return len(r.oracle.running) == len(r.books.accounts) })
	r.books.released = true
	if ctx.Err() != nil {
		ctx = t.Context()
	}
	l.through(ctx, schema.Desired{Providers: r.cfg.Desired.Providers}, func() bool { return r.leftover() == "" })
	for _, v := range r.oracle.found {
		t.Error(v)
	}
	return k.calls
}

// through accepts a configuration and steps until it is carried out.
func (l *life) through(ctx context.Context, desired schema.Desired, done func() bool) {
	l.t.Helper()
	end := l.clock.Now().Add(2 * time.Hour)
	err := l.accept(ctx, desired)
	if err == nil {
		err = l.until(ctx, end, done)
	}
	if errors.Is(context.Cause(ctx), errKilled) {
		if err := l.lead(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
		if err = l.accept(l.t.Context(), desired); err == nil {
			err = l.until(l.t.Context(), end, done)
		}
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if !done() {
		l.t.Errorf("not done after 2 hours: %s; left is %q", l.unsettled(), l.leftover())
	}
}

// TestKilledAtEveryCloudCall, with FRAY_TEST_SOAK at each, else at the first of
// each kind, and with -short at some of these: whenever the process dies that applies or destroys,
// the next one ends what it began; nothing leaks, nothing is there twice, and
// nothing live is deleted.
func TestKilledAtEveryCloudCall(t *testing.T) {
	calls := lives(t, 0, false)
	if len(calls) < 30 {
		t.Fatalf("an undisturbed life made %d calls, want dozens: %v", len(calls), calls)
	}
	seen, tried := map[string]bool{}, 0
	for n := range calls {
		if seen[calls[n]] && os.Getenv("FRAY_TEST_SOAK") == "" { // the first of each kind, but in a soak
			continue
		}
		seen[calls[n]] = true
		if testing.Short() && len(seen)%6 != 1 {
			continue
		}
		tried++
		for _, late := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[late]
			t.Run(fmt.Sprintf("%s call %d %s", when, n+1, calls[n]), func(t *testing.T) { lives(t, n+1, late) })
		}
	}
	t.Logf("killed before and after %d of %d calls", tried, len(calls))
}
