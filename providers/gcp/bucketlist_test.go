package gcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state/store"
)

// seed makes objects past the Bucket and the wire.
func (w *wire) seed(prefix string, n int) {
	for i := range n {
		w.service.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{
			BucketName: "acme", Name: fmt.Sprintf("rl/math/%s%05d", prefix, i),
		}})
	}
}

// The numbers are those of a service that returns twenty objects at a time.
func TestListOfSeveralPrefixesIsOneRequestForEveryPage(t *testing.T) {
	tests := []struct {
		name                           string
		assign, between, hosts, behind int
		found, requests                int
	}{
		{"few", 2, 2, 2, 0, 4, 1},
		{"a page", 10, 0, 10, 0, 20, 1},
		{"more than a page", 12, 0, 12, 0, 24, 2},
		{"many pages", 46, 0, 46, 0, 92, 5},
		{"a page with what is between", 6, 8, 6, 0, 12, 1},
		{"much between", 2, 200, 2, 0, 4, 2},
		{"much between whole pages", 40, 200, 40, 0, 80, 5},
		{"much behind", 2, 0, 2, 200, 4, 1},
		{"much between nothing", 0, 100, 0, 100, 0, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWire(t)
			w.page = 20
			b := w.open(t, quick())
			w.seed("assign/", test.assign)
			w.seed("bundles/", test.between)
			w.seed("hosts/", test.hosts)
			w.seed("logs/", test.behind)
			list, err := b.List(t.Context(), store.AssignPrefix, store.HostsPrefix)
			if err != nil || len(list) != test.found {
				t.Errorf("got %d objects, %v, want %d", len(list), err, test.found)
			}
			if counts := w.count(); counts[reqList] != test.requests || total(counts) != test.requests {
				t.Errorf("got requests %v, want %d lists", counts, test.requests)
			}
			wantOwnTokens(t, w.requests(false))
		})
	}
}

// wantOwnTokens wants no list to go on with the token of another: the service
// refuses that, and the emulator does not.
func wantOwnTokens(t *testing.T, seen []*http.Request) {
	t.Helper()
	before := url.Values{}
	for _, r := range seen {
		query := r.URL.Query()
		for _, name := range []string{"prefix", "startOffset", "endOffset"} {
			if query.Get("pageToken") != "" && query.Get(name) != before.Get(name) {
				t.Errorf("a list of %s %q goes on with the token of %q", name, query.Get(name), before.Get(name))
			}
		}
		before = query
	}
}

func TestListOfSeveralPrefixesAsksForARange(t *testing.T) {
	w := newWire(t)
	b := w.open(t, quick())
	if _, err := b.List(t.Context(), "hosts/", "assign/"); err != nil {
		t.Fatal(err)
	}
	seen := w.requests(false)
	query := seen[len(seen)-1].URL.Query()
	for name, want := range map[string]string{
		"prefix": "rl/math/", "startOffset": "rl/math/assign/", "endOffset": "rl/math/hosts0", "maxResults": "1000",
	} {
		if got := query.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestNameAfter(t *testing.T) {
	for prefix, want := range map[string]string{
		"hosts/": "hosts0", "a": "b", "ä": "å", "a\x7f": "a\u0080", "a\ud7ff": "a\ue000", "a\U0010ffff": "b", "\U0010ffff": "", "": "",
	} {
		if got := after(prefix); got != want {
			t.Errorf("after %q: got %q, want %q", prefix, got, want)
		}
	}
}

// A look at a mailbox in which nothing happened is its list and nothing else;
// one in which something did reads that.
func TestWatchingIsOneListAndWhatChanged(t *testing.T) {
	const hosts = 200
	w := newWire(t)
	b := w.open(t, quick())
	report := func(slice string, seq uint64) {
		t.Helper()
		data, err := json.Marshal(store.HostReport{Slice: slice, Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		put(t, b, store.HostKey(slice, 0), string(data), store.Any)
	}
	for i := range hosts {
		report("s"+strconv.Itoa(i), 1)
	}
	put(t, b, store.AssignKey("s0"), `{"slice":"s0"}`, store.Absent)
	put(t, b, store.StateKey, strings.Repeat("x", 1000), store.Absent)
	w.seed("bundles/", 50)
	w.seed("logs/", 100)
	w.page = 300 // not for all, were it listed
	o := &apply.Observer{Store: b}
	look := func(what string, want map[request]int) {
		t.Helper()
		w.count()
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil || len(obs.Hosts) != hosts || len(obs.Assignments) != 1 {
			t.Fatalf("%s: %d hosts, %v", what, len(obs.Hosts), err)
		}
		counts := w.count()
		for _, kind := range []request{reqList, reqGet} {
			if counts[kind] != want[kind] {
				t.Errorf("%s: %d requests to %s, want %d", what, counts[kind], kind, want[kind])
			}
		}
		if got := total(counts); got != want[reqList]+want[reqGet] {
			t.Errorf("%s: requests %v besides", what, counts)
		}
	}
	look("first", map[request]int{reqList: 1, reqGet: hosts + 1})
	look("nothing happened", map[request]int{reqList: 1})
	report("s7", 2)
	put(t, b, store.AssignKey("s0"), `{"slice":"s0","generation":2}`, store.Any)
	look("two changed", map[request]int{reqList: 1, reqGet: 2})
	look("nothing happened again", map[request]int{reqList: 1})
}

// The folders of a prefix are one request, however many objects they have.
func TestFolders(t *testing.T) {
	w := newWire(t)
	b := w.open(t, quick())
	w.seed("workspaces/b/logs/", 300)
	w.seed("workspaces/a/x", 1)
	w.seed("workspaces/file", 1)
	w.seed("workspaces-not/c/", 1)
	w.seed("state", 1)
	for prefix, want := range map[string]string{
		"": "workspaces workspaces-not", "workspaces/": "a b", "workspaces/b/": "logs", "absent/": "",
	} {
		before := total(w.count())
		got, err := b.Folders(t.Context(), prefix)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("folders of %q = %q, %v; want %q", prefix, got, err, want)
		}
		if n := total(w.count()) - before; n != 1 {
			t.Errorf("folders of %q took %d requests, want 1", prefix, n)
		}
	}
	if got, err := b.Folders(t.Context(), "workspaces"); err == nil {
		t.Errorf("folders of a prefix that ends in no slash = %q, want an error", got)
	}
}
