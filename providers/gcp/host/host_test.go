package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/metadata"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// onMachine makes this process one on a machine of Google Cloud.
func onMachine(t *testing.T, f metadata.Facts) *metadata.Server {
	t.Helper()
	meta := metadata.New(f)
	server := httptest.NewServer(meta)
	t.Cleanup(func() {
		meta.Close()
		server.Close()
	})
	t.Setenv(metadataHostVariable, server.Listener.Addr().String())
	return meta
}

func specOf(t *testing.T, hosts int, engine schema.Engine) (schema.SliceSpec, string) {
	t.Helper()
	spec := schema.SliceSpec{Name: "s-1", TPU: "v5litepod-16", Hosts: hosts, Zone: "us-west4-a", Cloud: schema.CloudSpec{Engine: engine}}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return spec, string(data)
}

func TestReadHost(t *testing.T) {
	for _, test := range []struct {
		name       string
		machine    string // "": vm-42
		zone       string // "": the slice's
		hosts      int
		engine     schema.Engine
		attributes map[string]string
		number     int
		err        string
	}{
		{name: "a single machine", hosts: 1, engine: schema.EngineGCE, machine: "s-1"},
		{
			name: "a copy of a single machine", hosts: 1, engine: schema.EngineGCE,
			err: "this machine is a copy: its metadata fray-spec is that of slice s-1 in us-west4-a, but it is instance vm-42;",
		},
		{
			name: "a copy of a node", hosts: 4, engine: schema.EngineTPU,
			attributes: map[string]string{"agent-worker-number": "0", "tpu-env": "NODE_ID: 'copy-of-s-1'\n"},
			err:        "but it is node copy-of-s-1;",
		},
		{name: "a copy in another zone", hosts: 4, engine: schema.EngineTPU, zone: "us-east5-a", err: "but it is zone us-east5-a;"},
		{
			name: "a copy of a machine of a group", hosts: 4, engine: schema.EngineGCE,
			err: "but it is instance vm-42, which no instance group made;",
		},
		{
			name: "a machine of another group", hosts: 4, engine: schema.EngineGCE,
			attributes: map[string]string{"created-by": "projects/1/zones/us-west4-a/instanceGroupManagers/s-2"},
			err:        "but it is instance vm-42 of group s-2;",
		},
		{name: "a worker", hosts: 4, engine: schema.EngineTPU, attributes: map[string]string{"agent-worker-number": "3"}, number: 3},
		{
			name: "a worker by tpu-env", hosts: 4, engine: schema.EngineTPU, number: 2,
			attributes: map[string]string{"tpu-env": "ZONE: 'us-west4-a'\nWORKER_ID: '2'\nNODE_ID: 's-1'\n"},
		},
		{
			name: "a machine of a group, whatever it says", hosts: 4, engine: schema.EngineGCE, number: -1,
			attributes: map[string]string{
				"agent-worker-number": "0", "created-by": "projects/1/zones/us-west4-a/instanceGroupManagers/s-1",
			},
		},
		{
			name: "a worker too many", hosts: 4, engine: schema.EngineTPU, attributes: map[string]string{"agent-worker-number": "4"},
			err: `find out which host this is: the metadata server reports that it is worker "4" of 4`,
		},
		{
			name: "a worker without a number", hosts: 4, engine: schema.EngineTPU,
			err: "instance/attributes/tpu-env: the metadata server does not know it",
		},
		{
			name: "no slice", hosts: 1, engine: schema.EngineTPU, attributes: map[string]string{"fray-spec": "{"},
			err: "its metadata fray-spec is no slice: unexpected end of JSON input",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, text := specOf(t, test.hosts, test.engine)
			attributes := map[string]string{"fray-spec": text, "fray-store": "gs://acme/rl"}
			maps.Copy(attributes, test.attributes)
			onMachine(t, metadata.Facts{
				ID: 42, Name: cmp.Or(test.machine, "vm-42"), Project: "acme", Zone: cmp.Or(test.zone, "us-west4-a"), Address: "10.0.0.9", Attributes: attributes,
			})
			got, err := Read(t.Context())
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			want := Host{
				Instance: "42", Name: cmp.Or(test.machine, "vm-42"), Zone: "us-west4-a", Address: "10.0.0.9", Store: "gs://acme/rl", Spec: spec, Number: test.number,
			}
			if err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
		})
	}
}

func TestReportStatus(t *testing.T) {
	meta := onMachine(t, metadata.Facts{Attributes: map[string]string{"enable-guest-attributes": "TRUE"}})
	if err := ReportStatus(t.Context(), "running: x"); err != nil || meta.GuestAttributes()["fray/status"] != "running: x" {
		t.Errorf("got %v and %q", err, meta.GuestAttributes())
	}
	onMachine(t, metadata.Facts{})
	if err := ReportStatus(t.Context(), "running: x"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("got %v from a machine that may say nothing of itself, want a 403", err)
	}
}

func TestRegistryToken(t *testing.T) {
	onMachine(t, metadata.Facts{Account: bootAccount})
	for registry, want := range map[string]string{
		"us-docker.pkg.dev": "oauth2accesstoken:ya29.emulated-" + bootAccount,
		"gcr.io":            "oauth2accesstoken:ya29.emulated-" + bootAccount,
		"eu.gcr.io":         "oauth2accesstoken:ya29.emulated-" + bootAccount,
		"evilgcr.io":        ":",
		"ghcr.io":           ":",
		"pkg.dev.evil.com":  ":",
	} {
		user, password, err := RegistryToken(t.Context(), registry)
		if got := user + ":" + password; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", registry, got, err, want)
		}
	}
	onMachine(t, metadata.Facts{})
	if user, password, err := RegistryToken(t.Context(), "gcr.io"); user != "" || password != "" || err != nil {
		t.Errorf("without an account: got %q, %q, %v", user, password, err)
	}
}

func TestNotices(t *testing.T) {
	meta := onMachine(t, metadata.Facts{})
	n := NewNotices()
	told := make(chan string)
	go func() {
		last := ""
		for range 3 {
			last, _ = n.Next(t.Context(), last)
			told <- last
		}
	}()
	meta.Maintain("MIGRATE_ON_HOST_MAINTENANCE") // none of our business
	meta.Maintain("TERMINATE_ON_HOST_MAINTENANCE")
	for _, step := range []struct {
		then func()
		want string
	}{
		{meta.Preempt, "host maintenance: TERMINATE_ON_HOST_MAINTENANCE"},
		{func() { meta.Maintain("") }, "preempted by Compute Engine"},
	} {
		if got := <-told; got != step.want {
			t.Errorf("told %q, want %q", got, step.want)
		}
		step.then()
	}
	// At boot a notice that is there already is told at once.
	if got, err := NewNotices().Next(t.Context(), ""); err != nil || got != "preempted by Compute Engine" {
		t.Errorf("told %q, %v at boot", got, err)
	}
}

// TestNoticesAgainstAFlakyServer: a notice that comes while the server does not answer is read later.
func TestNoticesAgainstAFlakyServer(t *testing.T) {
	meta := onMachine(t, metadata.Facts{})
	var mu sync.Mutex
	failures := 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock() // two requests wait at a time
		fail := failures > 0 && r.URL.Query().Get("wait_for_change") == "true"
		if fail {
			failures--
		}
		last := fail && failures == 0
		mu.Unlock()
		switch {
		case last:
			meta.Preempt()
			http.Error(w, "restarting", http.StatusServiceUnavailable)
		case fail:
			panic(http.ErrAbortHandler)
		default:
			meta.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv(metadataHostVariable, server.Listener.Addr().String())
	if got, err := NewNotices().Next(t.Context(), ""); err != nil || got != "preempted by Compute Engine" {
		t.Errorf("told %q, %v", got, err)
	}
}

func TestNoticesEnd(t *testing.T) {
	onMachine(t, metadata.Facts{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := NewNotices().Next(ctx, "")
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("no error from a wait that was ended")
	}
}

func claimants(t *testing.T, hosts int) (store.Store, func(instance string) Host) {
	t.Helper()
	s, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := specOf(t, hosts, schema.EngineGCE)
	return s, func(instance string) Host {
		return Host{Instance: instance, Address: "10.0.0.1", Spec: spec, Number: -1}
	}
}

// TestClaimHost: however many come at once, each gets a number of its own, and
// finds it again after a reboot.
func TestClaimHost(t *testing.T) {
	const hosts = 16
	s, machine := claimants(t, hosts)
	claim := func() []int {
		numbers := make([]int, hosts)
		var all sync.WaitGroup
		for i := range numbers {
			all.Go(func() {
				n, err := Claim(t.Context(), s, machine(fmt.Sprint("vm-", i)))
				if err != nil {
					t.Error(err)
				}
				numbers[i] = n
			})
		}
		all.Wait()
		return numbers
	}
	first := claim()
	sorted := slices.Sorted(slices.Values(first))
	for i, n := range sorted {
		if n != i {
			t.Fatalf("claimed %v, want each number once", first)
		}
	}
	if again := claim(); !slices.Equal(again, first) {
		t.Errorf("after a reboot %v, want %v", again, first)
	}
	object, err := s.Get(t.Context(), store.HostKey("s-1", first[3]))
	var r state.HostReport
	if err == nil {
		err = json.Unmarshal(object.Data, &r)
	}
	if err != nil || r.Instance != "vm-3" || r.Slice != "s-1" || r.Host != first[3] || r.Address != "10.0.0.1" {
		t.Errorf("the claim is %+v, %v", r, err)
	}
}

func TestClaimHostKeepsANumber(t *testing.T) {
	s, machine := claimants(t, 2)
	h := machine("vm")
	h.Number = 1
	if n, err := Claim(t.Context(), s, h); n != 1 || err != nil {
		t.Errorf("got %d, %v for a host that has number 1", n, err)
	}
	if listed, err := s.List(t.Context(), ""); err != nil || len(listed) > 0 {
		t.Errorf("it wrote %v, %v", listed, err)
	}
}

// TestClaimHostOfADeadMachine: a group's new machine takes the place of one that
// says nothing any more, and never of one that lives.
func TestClaimHostOfADeadMachine(t *testing.T) {
	s, machine := claimants(t, 2)
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"lives", "dead"} {
			if _, err := Claim(t.Context(), s, machine(name)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var beats sync.WaitGroup
		beats.Go(func() {
			for seq := uint64(1); ctx.Err() == nil; seq++ {
				data := fmt.Sprintf(`{"slice":"s-1","host":0,"instance":"lives","seq":%d}`, seq)
				if _, err := s.Put(t.Context(), store.HostKey("s-1", 0), []byte(data), store.Any); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
			}
		})
		began := time.Now()
		n, err := Claim(t.Context(), s, machine("new"))
		if n != 1 || err != nil {
			t.Errorf("got %d, %v, want the dead machine's 1", n, err)
		}
		if waited := time.Since(began); waited < claimSilence {
			t.Errorf("it waited %v, want %v of silence", waited, claimSilence)
		}
		cancel()
		beats.Wait()
	})
}

func TestClaimHostEnds(t *testing.T) {
	s, machine := claimants(t, 1)
	h := machine("first")
	h.Spec.Hosts = 1
	if _, err := Claim(t.Context(), s, h); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if n, err := Claim(ctx, s, machine("second")); err == nil {
		t.Errorf("a machine too many got %d", n)
	}
}
