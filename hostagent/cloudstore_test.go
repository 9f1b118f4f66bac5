package hostagent

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// flaky is a store whose writes fail on demand.
type flaky struct {
	store.Store
	err error
}

func (f *flaky) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Store.Put(ctx, key, data, want)
}

// TestCloudStoreNotifies of the first report, of failures in a row, and of the first report
// after these; of nothing else.
func TestCloudStoreNotifies(t *testing.T) {
	denied := errors.New("permission denied")
	inner := &flaky{Store: storetest.NewMemory()}
	var reported []error
	c := &cloudStore{Store: inner, key: "hosts/s/0.json", notify: func(_ context.Context, err error) bool { reported = append(reported, err); return true }}
	for i, step := range []struct {
		key  string
		err  error
		want []error // reported at this write
	}{
		{key: "logs/a"},
		{key: c.key, err: denied},
		{key: c.key, err: denied},
		{key: c.key, err: denied, want: []error{denied}},
		{key: c.key, err: denied},
		{key: c.key, want: []error{nil}},
		{key: c.key},
		{key: "logs/a", err: denied},
		{key: c.key, err: denied},
		{key: c.key},
		{key: c.key, err: denied},
		{key: c.key, err: denied},
		{key: c.key, err: denied, want: []error{denied}},
		{key: c.key, want: []error{nil}},
	} {
		reported, inner.err = nil, step.err
		if _, err := c.Put(t.Context(), step.key, nil, store.Any); !errors.Is(err, step.err) || !slices.Equal(reported, step.want) {
			t.Errorf("write %d of %s: reported %v, %v, want %v", i, step.key, reported, err, step.want)
		}
	}
}

// A notification that could not be made is made with the next report.
func TestCloudStoreNotifiesAgain(t *testing.T) {
	times := 0
	c := &cloudStore{Store: storetest.NewMemory(), key: "hosts/s/0.json", notify: func(context.Context, error) bool { times++; return times == 2 }}
	for i, want := range []int{1, 2, 2} {
		if _, err := c.Put(t.Context(), c.key, nil, store.Any); err != nil || times != want {
			t.Errorf("after report %d: notified %d times, %v, want %d", i, times, err, want)
		}
	}
}

// conditional is a store that offers conditional reads.
type conditional struct {
	store.Store
}

func (conditional) GetUnless(context.Context, string, store.Generation) (store.Object, error) {
	return store.Object{}, store.ErrUnchanged
}

// An agent in the cloud reads its assignment by conditional reads, as elsewhere.
func TestCloudStoreOffersConditionalReads(t *testing.T) {
	c := &cloudStore{Store: conditional{storetest.NewMemory()}}
	if _, err := store.GetUnless(t.Context(), c, store.AssignKey("s"), 1); !errors.Is(err, store.ErrUnchanged) {
		t.Errorf("the read is not conditional: %v", err)
	}
}
