package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	gcs "cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
)

// call is one step of a sequence that the real client goes through. It reports
// what is to be seen of the answer beside its status. generations are those
// of the object so far, the last one first.
type call struct {
	name string
	do   func(ctx context.Context, bucket *gcs.BucketHandle, generations []int64) (string, error)
	// want is our answer, "STATUS seen". fake is that of fake-gcs-server where
	// it is another one, and why states which of the two is the service's.
	want, fake, why string
}

const ignored = "fake-gcs-server ignores preconditions but of uploads; the service does not"

func put(data string, when gcs.Conditions) func(context.Context, *gcs.BucketHandle, []int64) (string, error) {
	return func(ctx context.Context, bucket *gcs.BucketHandle, _ []int64) (string, error) {
		object := bucket.Object("a/state.json")
		if when != (gcs.Conditions{}) {
			object = object.If(when)
		}
		_, err := tryWrite(ctx, object, data)
		return "", err
	}
}

// putOver replaces one of the generations so far.
func putOver(data string, age int) func(context.Context, *gcs.BucketHandle, []int64) (string, error) {
	return func(ctx context.Context, bucket *gcs.BucketHandle, generations []int64) (string, error) {
		when := gcs.Conditions{GenerationMatch: generations[age]}
		generation, err := tryWrite(ctx, bucket.Object("a/state.json").If(when), data)
		return fmt.Sprint("later: ", err == nil && generation > generations[0]), err
	}
}

func get(object func(*gcs.BucketHandle, []int64) *gcs.ObjectHandle) func(context.Context, *gcs.BucketHandle, []int64) (string, error) {
	return func(ctx context.Context, bucket *gcs.BucketHandle, generations []int64) (string, error) {
		r, err := object(bucket, generations).NewReader(ctx)
		if err != nil {
			return "", err
		}
		defer func() { _ = r.Close() }()
		data, err := io.ReadAll(r)
		return string(data) + fmt.Sprint(" last: ", r.Attrs.Generation == generations[0]), err
	}
}

func remove(when func(generations []int64) gcs.Conditions) func(context.Context, *gcs.BucketHandle, []int64) (string, error) {
	return func(ctx context.Context, bucket *gcs.BucketHandle, generations []int64) (string, error) {
		object := bucket.Object("a/state.json")
		if when != nil {
			object = object.If(when(generations))
		}
		return "", object.Delete(ctx)
	}
}

func list(query gcs.Query) func(context.Context, *gcs.BucketHandle, []int64) (string, error) {
	return func(ctx context.Context, bucket *gcs.BucketHandle, _ []int64) (string, error) {
		var names []string
		for objects := bucket.Objects(ctx, &query); ; {
			attrs, err := objects.Next()
			if errors.Is(err, iterator.Done) {
				return strings.Join(names, " "), nil
			}
			if err != nil {
				return "", err
			}
			names = append(names, attrs.Prefix+attrs.Name)
		}
	}
}

func calls() []call {
	live := func(b *gcs.BucketHandle, _ []int64) *gcs.ObjectHandle { return b.Object("a/state.json") }
	return []call{
		{name: "get what is not there", do: get(live), want: "404"},
		{name: "replace what is not there", do: putOver("x", 0), want: "412 later: false"},
		{name: "make", do: put("one", gcs.Conditions{DoesNotExist: true}), want: "0"},
		{name: "make again", do: put("x", gcs.Conditions{DoesNotExist: true}), want: "412"},
		{name: "get", do: get(live), want: "0 one last: true"},
		{name: "replace", do: putOver("two", 0), want: "0 later: true"},
		{name: "replace what was replaced", do: putOver("x", 1), want: "412 later: false"},
		{name: "get the replaced generation", do: get(func(b *gcs.BucketHandle, g []int64) *gcs.ObjectHandle {
			return b.Object("a/state.json").Generation(g[1])
		}), want: "404"},
		{name: "get the present generation", do: get(func(b *gcs.BucketHandle, g []int64) *gcs.ObjectHandle {
			return b.Object("a/state.json").Generation(g[0])
		}), want: "0 two last: true"},
		{name: "get on condition of another generation", do: get(func(b *gcs.BucketHandle, g []int64) *gcs.ObjectHandle {
			return b.Object("a/state.json").If(gcs.Conditions{GenerationMatch: g[1]})
		}), want: "412", fake: "0 two last: true", why: ignored},
		{name: "write without condition", do: put("three", gcs.Conditions{}), want: "0"},
		{name: "list", do: list(gcs.Query{Prefix: "a/"}), want: "0 a/state.json"},
		{name: "list folders", do: list(gcs.Query{Delimiter: "/"}), want: "0 a/"},
		{name: "list from", do: list(gcs.Query{StartOffset: "a/t"}), want: "0"},
		{name: "delete what was replaced", do: remove(func(g []int64) gcs.Conditions {
			return gcs.Conditions{GenerationMatch: g[1]}
		}), want: "412", fake: "0", why: ignored},
		{name: "delete", do: remove(nil), want: "0", fake: "404", why: "it was deleted before, see above"},
		{name: "delete again", do: remove(nil), want: "404"},
		{name: "make after delete", do: put("four", gcs.Conditions{DoesNotExist: true}), want: "0"},
		{name: "bucket", do: func(ctx context.Context, b *gcs.BucketHandle, _ []int64) (string, error) {
			attrs, err := b.Attrs(ctx)
			return attrs.Name, err
		}, want: "0 acme"},
	}
}

// The same calls by Google's client, to fake-gcs-server and to us.
func TestAnswersBesideFakeGCSServer(t *testing.T) {
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "acme"})
	theirs := httptest.NewServer(fake.HTTPHandler())
	t.Cleanup(func() {
		theirs.Close()
		fake.Stop()
	})
	ours := start(t, storage.Config{})
	got := map[bool][]string{
		true: sequence(t, clientOf(t, theirs).Bucket("acme")), false: sequence(t, ours.client(t).Bucket("acme")),
	}
	for i, c := range calls() {
		want := c.want
		if c.fake != "" {
			want = c.fake
		}
		t.Logf("%-40s ours %-20q fake-gcs-server %-20q %s", c.name, got[false][i], got[true][i], c.why)
		if got[false][i] != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got[false][i], c.want)
		}
		if got[true][i] != want {
			t.Errorf("%s: fake-gcs-server: got %q, want %q", c.name, got[true][i], want)
		}
	}
}

// sequence goes through all calls and returns what each was answered.
func sequence(t *testing.T, bucket *gcs.BucketHandle) []string {
	t.Helper()
	var answers []string
	generations := []int64{1}
	for _, c := range calls() {
		seen, err := c.do(t.Context(), bucket, generations)
		status := statusOf(err)
		if errors.Is(err, gcs.ErrObjectNotExist) {
			status = 404
		}
		answers = append(answers, strings.TrimSuffix(fmt.Sprintf("%d %s", status, seen), " "))
		if attrs, err := bucket.Object("a/state.json").Attrs(t.Context()); err == nil && attrs.Generation != generations[0] {
			generations = slices.Insert(generations, 0, attrs.Generation)
		}
	}
	return answers
}
