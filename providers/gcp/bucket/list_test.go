package bucket

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

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
			w := buckettest.New(t)
			w.Page = 20
			b := opened(t, w, clienttest.Quick())
			w.Seed("assign/", test.assign)
			w.Seed("bundles/", test.between)
			w.Seed("hosts/", test.hosts)
			w.Seed("logs/", test.behind)
			list, err := b.List(t.Context(), store.AssignPrefix, store.HostsPrefix)
			if err != nil || len(list) != test.found {
				t.Errorf("got %d objects, %v, want %d", len(list), err, test.found)
			}
			if counts := w.Count(); counts[buckettest.ReqList] != test.requests || total(counts) != test.requests {
				t.Errorf("got requests %v, want %d lists", counts, test.requests)
			}
			wantOwnTokens(t, w.Requests(false))
		})
	}
}

// wantOwnTokens wants no list to go on with the token of another: the service
// rejects that, and the emulator does not.
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
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	if _, err := b.List(t.Context(), "hosts/", "assign/"); err != nil {
		t.Fatal(err)
	}
	seen := w.Requests(false)
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
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	report := func(slice string, seq uint64) {
		t.Helper()
		data, err := json.Marshal(state.HostReport{Slice: slice, Seq: seq})
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
	w.Seed("bundles/", 50)
	w.Seed("logs/", 100)
	w.Page = 300 // not for all, were it listed
	o := &apply.Observer{Store: b}
	look := func(what string, want map[buckettest.Request]int) {
		t.Helper()
		w.Count()
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil || len(obs.Hosts) != hosts || len(obs.Assignments) != 1 {
			t.Fatalf("%s: %d hosts, %v", what, len(obs.Hosts), err)
		}
		counts := w.Count()
		for _, kind := range []buckettest.Request{buckettest.ReqList, buckettest.ReqGet} {
			if counts[kind] != want[kind] {
				t.Errorf("%s: %d requests to %s, want %d", what, counts[kind], kind, want[kind])
			}
		}
		if got := total(counts); got != want[buckettest.ReqList]+want[buckettest.ReqGet] {
			t.Errorf("%s: requests %v besides", what, counts)
		}
	}
	look("first", map[buckettest.Request]int{buckettest.ReqList: 1, buckettest.ReqGet: hosts + 1})
	look("nothing happened", map[buckettest.Request]int{buckettest.ReqList: 1})
	report("s7", 2)
	put(t, b, store.AssignKey("s0"), `{"slice":"s0","generation":2}`, store.Any)
	look("two changed", map[buckettest.Request]int{buckettest.ReqList: 1, buckettest.ReqGet: 2})
	look("nothing happened again", map[buckettest.Request]int{buckettest.ReqList: 1})
}

// The folders of a prefix are one request, however many objects they have.
func TestFolders(t *testing.T) {
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	w.Seed("workspaces/b/logs/", 300)
	w.Seed("workspaces/a/x", 1)
	w.Seed("workspaces/file", 1)
	w.Seed("workspaces-not/c/", 1)
	w.Seed("state", 1)
	for prefix, want := range map[string]string{
		"": "workspaces workspaces-not", "workspaces/": "a b", "workspaces/b/": "logs", "absent/": "",
	} {
		before := total(w.Count())
		got, err := b.Folders(t.Context(), prefix)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("folders of %q = %q, %v; want %q", prefix, got, err, want)
		}
		if n := total(w.Count()) - before; n != 1 {
			t.Errorf("folders of %q took %d requests, want 1", prefix, n)
		}
	}
	if got, err := b.Folders(t.Context(), "workspaces"); err == nil {
		t.Errorf("folders of a prefix that ends in no slash = %q, want an error", got)
	}
}
