package storage_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gcs "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
)

// Lists in pages against a plain loop over all names.
func TestListsInPages(t *testing.T) {
	s := start(t, storage.Config{Buckets: []storage.Bucket{{Name: "acme", Versioning: true}}})
	bucket := s.client(t).Bucket("acme")
	var names []string
	for _, folder := range []string{"", "a/", "a/b/", "c/", "d"} {
		for i := range 3 {
			names = append(names, fmt.Sprint(folder, i))
		}
	}
	for _, name := range names {
		write(t, bucket.Object(name), "1")
		write(t, bucket.Object(name), "2")
	}
	if err := bucket.Object("d0").Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, q := range []gcs.Query{
		{}, {Prefix: "a/"}, {Delimiter: "/"}, {Prefix: "a/", Delimiter: "/"}, {StartOffset: "a/1", EndOffset: "c/1"},
		{Versions: true}, {Prefix: "d", Versions: true}, {Prefix: "nothing"},
	} {
		want := expected(names, q)
		for size := 1; size <= 5; size++ {
			if got := listed(t, bucket, q, size); !slices.Equal(got, want) {
				t.Errorf("%+v, %d at a time: got %v, want %v", q, size, got, want)
			}
		}
	}
}

func expected(names []string, q gcs.Query) []string {
	var want []string
	for _, name := range names {
		if !strings.HasPrefix(name, q.Prefix) || name < q.StartOffset || q.EndOffset != "" && name >= q.EndOffset {
			continue
		}
		below, _, isBelow := strings.Cut(name[len(q.Prefix):], "/")
		switch folder := q.Prefix + below + "/"; {
		case q.Delimiter != "" && isBelow:
			if !slices.Contains(want, folder) {
				want = append(want, folder)
			}
		case q.Versions:
			want = append(want, name, name)
		case name != "d0":
			want = append(want, name)
		}
	}
	slices.Sort(want)
	return want
}

func listed(t *testing.T, bucket *gcs.BucketHandle, q gcs.Query, size int) []string {
	t.Helper()
	var names []string
	objects := bucket.Objects(t.Context(), &q)
	objects.PageInfo().MaxSize = size
	for {
		attrs, err := objects.Next()
		if errors.Is(err, iterator.Done) {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, attrs.Prefix+attrs.Name)
	}
}

func TestFieldsSelectWhatIsAnswered(t *testing.T) {
	s := start(t, storage.Config{})
	bucket := s.client(t).Bucket("acme")
	write(t, bucket.Object("x"), "1")
	q := gcs.Query{}
	if err := q.SetAttrSelection([]string{"Name", "Size"}); err != nil {
		t.Fatal(err)
	}
	attrs, err := bucket.Objects(t.Context(), &q).Next()
	if err != nil || attrs.Name != "x" || attrs.Size != 1 || attrs.Generation != 0 || attrs.ContentType != "" {
		t.Errorf("got %+v, %v, want name and size alone", attrs, err)
	}
}
