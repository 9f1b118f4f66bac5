package bucket

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

// keysFrom are as Seed makes them.
func keysFrom(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s%05d", prefix, i))
	}
	return keys
}

// withSmallPages is a service, and a store that knows that it returns twenty objects at a time.
func withSmallPages(t *testing.T) (*buckettest.Wire, *Bucket) {
	w := buckettest.New(t)
	w.Page = 20
	b := opened(t, w, clienttest.Quick())
	b.divisions.page = w.Page
	return w, b
}

// A long list that was made before is made of parts at the same time, and finds the same as a
// list page by page, whatever has come or gone since.
func TestLongListsAreDivided(t *testing.T) {
	w, b := withSmallPages(t)
	w.Seed("assign/", 30)
	w.Seed("bundles/", 24) // between the prefixes
	w.Seed("hosts/", 50)
	keys := slices.Concat(keysFrom("assign/", 30), keysFrom("hosts/", 50))
	look := func(what string, requests int) {
		t.Helper()
		w.Count()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		list, err := b.List(ctx, store.AssignPrefix, store.HostsPrefix)
		var got []string
		for _, o := range list {
			got = append(got, o.Key)
		}
		if slices.Sort(keys); err != nil || !slices.Equal(got, keys) {
			t.Errorf("%s: got %d objects, %v, want %d", what, len(got), err, len(keys))
		}
		if n := w.Count()[buckettest.ReqList]; n != requests {
			t.Errorf("%s: %d requests, want %d", what, n, requests)
		}
	}
	remove := func(gone func(key string) bool) {
		keys = slices.DeleteFunc(keys, func(key string) bool {
			if !gone(key) {
				return false
			}
			if err := b.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
			return true
		})
	}
	look("first", 5) // the second page ends between the prefixes
	var arrived atomic.Int64
	together := make(chan struct{})
	w.Always(func(buckettest.Request) (clienttest.Fault, bool) {
		if arrived.Add(1) == 4 {
			close(together)
		}
		return clienttest.Fault{Damage: func(out http.ResponseWriter, reply *httptest.ResponseRecorder) {
			<-together
			clienttest.Reply(out, reply)
		}}, true
	})
	look("again", 6) // a part has a page of what is between
	w.Always(nil)
	w.Seed("hosts/00000/", 24)
	keys = append(keys, keysFrom("hosts/00000/", 24)...)
	marks := b.divisions.of([]string{"assign/", "hosts/"})
	remove(func(key string) bool { return slices.Contains(marks, key) })
	look("after some were added and those were removed with which parts begin", 7)
	remove(func(key string) bool { return key > "assign/00002" && key < "hosts/" })
	look("after much was removed", 7)
	look("after much was removed, again", 6)
	remove(func(key string) bool { return key > "assign/00002" && key < "hosts/00040" })
	look("when few are left", 6)
	look("when few are left, again", 2)
	remove(func(string) bool { return true })
	look("nothing", 2)
}

// A part that cannot be listed fails the list.
func TestPartsThatFail(t *testing.T) {
	w, b := withSmallPages(t)
	w.Seed("hosts/", 50)
	for range 2 {
		if list, err := b.List(t.Context(), store.HostsPrefix); err != nil || len(list) != 50 {
			t.Fatalf("got %d objects, %v", len(list), err)
		}
	}
	w.Inject(buckettest.ReqList, clienttest.Answer(http.StatusForbidden, "no"))
	if list, err := b.List(t.Context(), store.HostsPrefix); err == nil {
		t.Errorf("got %d objects, want an error", len(list))
	}
}
