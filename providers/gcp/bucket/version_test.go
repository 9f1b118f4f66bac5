package bucket

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// openedVersioned is a bucket that keeps old versions.
func openedVersioned(t *testing.T, w *buckettest.Wire, tempo client.Pace) *Bucket {
	t.Helper()
	w.Service.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "keeping", VersioningEnabled: true})
	cfg := configOf(w)
	cfg.Bucket = "keeping"
	b, err := open(t.Context(), cfg, tempo)
	if err != nil {
		t.Fatal(err)
	}
	w.Count()
	return b
}

func TestBucketVersions(t *testing.T) {
	storetest.RunVersioned(t, func(t *testing.T) store.Store { return openedVersioned(t, buckettest.New(t), clienttest.Quick()) })
}

func TestBucketThatKeepsNoVersions(t *testing.T) {
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	if list, err := b.Versions(t.Context(), store.StateKey); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("versions of nothing: got %v, %v, want ErrNotFound", list, err)
	}
	put(t, b, store.StateKey, "one", store.Any)
	gen := put(t, b, store.StateKey, "two", store.Any)
	want := "list versions of gs://acme/rl/math/state.json: no old versions are kept; turn object versioning on: " +
		"gcloud storage buckets update gs://acme --versioning"
	list, err := b.Versions(t.Context(), store.StateKey)
	if !errors.Is(err, store.ErrNoVersions) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(list) != 1 || list[0].Generation != gen {
		t.Errorf("got %v, want the live one of generation %d", list, gen)
	}
	object, err := b.GetVersion(t.Context(), store.StateKey, gen)
	if err != nil || string(object.Data) != "two" {
		t.Errorf("get the live one: got %q, %v, want two", object.Data, err)
	}
}

// roles/storage.objectUser may list versions and not look at the bucket.
func TestBucketWhoseVersioningIsNotToBeSeen(t *testing.T) {
	w := buckettest.New(t)
	b := openedVersioned(t, w, clienttest.Quick())
	put(t, b, store.StateKey, "one", store.Any)
	w.Inject(buckettest.ReqStat, clienttest.Answer(403, strings.ReplaceAll(denied, "storage.objects.NAMED", "storage.buckets.get")))
	list, err := b.Versions(t.Context(), store.StateKey)
	if !errors.Is(err, store.ErrNoVersions) || !strings.Contains(err.Error(), "storage.buckets.get") || len(list) != 1 {
		t.Errorf("got %v, %v, want the live one and an ErrNoVersions that says why", list, err)
	}
	w.Left(t)
	put(t, b, store.StateKey, "two", store.Any)
	w.Inject(buckettest.ReqStat, clienttest.Answer(403, denied))
	if list, err = b.Versions(t.Context(), store.StateKey); err != nil || len(list) != 2 {
		t.Errorf("got %v, %v, want two, for which the bucket need not be looked at", list, err)
	}
}

func TestVersionsUnderFaults(t *testing.T) {
	t.Parallel()
	for _, f := range clienttest.PassingFaults() {
		t.Run(f.Name, func(t *testing.T) {
			w := buckettest.New(t)
			b := openedVersioned(t, w, impatient())
			gen := put(t, b, store.StateKey, "one", store.Any)
			w.Inject(buckettest.ReqList, f)
			w.Inject(buckettest.ReqStat, f)
			w.Inject(buckettest.ReqGet, f)
			if list, err := b.Versions(t.Context(), store.StateKey); err != nil || len(list) != 1 {
				t.Errorf("versions: got %v, %v, want one", list, err)
			}
			object, err := b.GetVersion(t.Context(), store.StateKey, gen)
			if err != nil || string(object.Data) != "one" {
				t.Errorf("get: got %q, %v, want one", object.Data, err)
			}
			w.Left(t)
		})
	}
	w := buckettest.New(t)
	b := openedVersioned(t, w, clienttest.Quick())
	gen := put(t, b, store.StateKey, strings.Repeat("0123456789", 20), store.Any)
	w.Inject(buckettest.ReqGet, clienttest.Fault{Damage: clienttest.Flipped})
	if _, err := b.GetVersion(t.Context(), store.StateKey, gen); err != nil || w.Count()[buckettest.ReqGet] != 2 {
		t.Errorf("a damaged version: got %v, want it to be read again", err)
	}
	w.Inject(buckettest.ReqStat, clienttest.Answer(401, clienttest.NoLogin))
	if _, err := b.Versions(t.Context(), store.StateKey); err == nil || !strings.Contains(err.Error(), "gcloud auth") {
		t.Errorf("got %v, want what to do", err)
	}
	if _, err := b.GetVersion(t.Context(), store.StateKey, gen+1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("state.json#%d", gen+1)) {
		t.Errorf("got %v, want an error that names the version", err)
	}
}
