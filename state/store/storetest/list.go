package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

func testList(t *testing.T, s store.Store) {
	keys := []string{"a-b.json", "a.json", "a/b/c.json", "a/b.json", "ab/c.json", "b.json", "logs/job.x/1/0/00000000"}
	want := map[string]store.Generation{}
	for _, key := range keys {
		want[key] = put(t, s, key, key, store.Absent)
	}
	tests := []struct {
		prefix string
		keys   string
	}{
		{"", "a-b.json a.json a/b.json a/b/c.json ab/c.json b.json logs/job.x/1/0/00000000"},
		{"a", "a-b.json a.json a/b.json a/b/c.json ab/c.json"},
		{"a/", "a/b.json a/b/c.json"},
		{"a/b", "a/b.json a/b/c.json"},
		{"a/b/", "a/b/c.json"},
		{"a/b.json", "a/b.json"},
		{"lo", "logs/job.x/1/0/00000000"},
		{"logs/job", "logs/job.x/1/0/00000000"},
		{"logs/job.x/1/0/0", "logs/job.x/1/0/00000000"},
		{"c", ""},
		{"nothing/below/", ""},
		{"a.json/", ""},
	}
	for _, test := range tests {
		list, err := s.List(t.Context(), test.prefix)
		if err != nil {
			t.Errorf("list %q: %v", test.prefix, err)
		}
		for _, attrs := range list {
			if attrs.Generation != want[attrs.Key] || attrs.Size != int64(len(attrs.Key)) {
				t.Errorf("list %q: got %+v, want generation %d", test.prefix, attrs, want[attrs.Key])
			}
		}
		if got := keysOf(list); got != test.keys {
			t.Errorf("list %q:\ngot  %s\nwant %s", test.prefix, got, test.keys)
		}
	}
}

func testListMany(t *testing.T, s store.Store) {
	const n = 1050 // Cloud Storage pages by 1000
	putMany(t, s, "hosts/a/", n)
	list, err := s.List(t.Context(), "hosts/")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != n {
		t.Fatalf("got %d objects, want %d", len(list), n)
	}
	for i, attrs := range list {
		if want := fmt.Sprintf("hosts/a/%04d.json", i); attrs.Key != want {
			t.Fatalf("object %d: got %s, want %s", i, attrs.Key, want)
		}
	}
}

func testListPrefixes(t *testing.T, s store.Store) {
	for key := range strings.FieldsSeq("assign.json assign/a.json assign/b.json assigned/c.json bundles/00 handover.json " +
		"hosts.json hosts/a/0.json hosts/a/1.json hosts/b/0.json hosts0/c.json lease.json logs/a/1/0/0 logs/ä/1/0/0") {
		put(t, s, key, "x", store.Absent)
	}
	tests := []struct {
		name     string
		prefixes []string
		keys     string
	}{
		{"none", nil, ""},
		{"apart", []string{"assign/", "hosts/"}, "assign/a.json assign/b.json hosts/a/0.json hosts/a/1.json hosts/b/0.json"},
		{"in another order", []string{"hosts/b", "assign/"}, "assign/a.json assign/b.json hosts/b/0.json"},
		{"twice", []string{"hosts/b", "hosts/b"}, "hosts/b/0.json"},
		{"one within another", []string{"hosts/a/1", "hosts/", "hosts/a"}, "hosts/a/0.json hosts/a/1.json hosts/b/0.json"},
		{"one that ends within a part", []string{"ass", "le"}, "assign.json assign/a.json assign/b.json assigned/c.json lease.json"},
		{"neighbours", []string{"hosts.", "hosts/", "hosts0"}, "hosts.json hosts/a/0.json hosts/a/1.json hosts/b/0.json hosts0/c.json"},
		{"whole keys", []string{"lease.json", "handover.json"}, "handover.json lease.json"},
		{"nothing below one", []string{"aaa/", "hosts/b", "zzz/"}, "hosts/b/0.json"},
		{"nothing below any", []string{"aaa/", "zzz/"}, ""},
		{"not in ASCII", []string{"bundles/", "logs/ä"}, "bundles/00 logs/ä/1/0/0"},
		{"everything, and some of it", []string{"", "hosts/"}, "assign.json assign/a.json assign/b.json assigned/c.json bundles/00 " +
			"handover.json hosts.json hosts/a/0.json hosts/a/1.json hosts/b/0.json hosts0/c.json lease.json logs/a/1/0/0 logs/ä/1/0/0"},
	}
	for _, test := range tests {
		list, err := s.List(t.Context(), test.prefixes...)
		if got := keysOf(list); err != nil || got != test.keys {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", test.name, got, err, test.keys)
		}
	}
}

// There may be more between and behind two prefixes than below them.
func testListGap(t *testing.T, s store.Store) {
	for _, key := range []string{"assign/a.json", "assign/b.json", "hosts/a/0.json"} {
		put(t, s, key, "x", store.Absent)
	}
	putMany(t, s, "logs/", 100)
	putMany(t, s, "bundles/", 100)
	list, err := s.List(t.Context(), "hosts/", "assign/")
	if got, want := keysOf(list), "assign/a.json assign/b.json hosts/a/0.json"; err != nil || got != want {
		t.Errorf("got %.200s, %v, want %s", got, err, want)
	}
}

func testListBusy(t *testing.T, s store.Store) {
	const objects, rounds = 50, 4
	key := func(i int) string {
		return fmt.Sprintf([]string{"hosts/a/%d.json", "assign/%d.json"}[i%2], i)
	}
	for i := range objects {
		put(t, s, key(i), "x", store.Absent)
	}
	var done atomic.Bool
	each(t, 2, func(worker int) error {
		if worker == 0 {
			defer done.Store(true)
			for i := range objects * rounds {
				if _, err := s.Put(t.Context(), key(i%objects), []byte("y"), store.Any); err != nil {
					return err
				}
			}
			return nil
		}
		for !done.Load() {
			list, err := s.List(t.Context(), store.AssignPrefix, store.HostsPrefix)
			if err != nil {
				return err
			}
			if len(list) != objects {
				return fmt.Errorf("list returned %d of %d objects", len(list), objects)
			}
		}
		return nil
	})
}

func putMany(t *testing.T, s store.Store, prefix string, n int) {
	t.Helper()
	each(t, 16, func(worker int) error {
		for i := worker; i < n; i += 16 {
			if _, err := s.Put(t.Context(), fmt.Sprintf("%s%04d.json", prefix, i), []byte("x"), store.Absent); err != nil {
				return err
			}
		}
		return nil
	})
}

// keysOf are the keys of a list, with spaces between.
func keysOf(list []store.Attrs) string {
	keys := make([]string, len(list))
	for i, attrs := range list {
		keys[i] = attrs.Key
	}
	return strings.Join(keys, " ")
}
