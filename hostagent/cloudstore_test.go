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

// TestCloudStoreTellsWhetherReportsGetThere: of the first report, of failures in a row, and of
// the first report after these; of nothing else.
func TestCloudStoreTellsWhetherReportsGetThere(t *testing.T) {
	denied := errors.New("permission denied")
	inner := &flaky{Store: storetest.NewMemory()}
	var told []error
	c := &cloudStore{Store: inner, key: "hosts/s/0.json", tell: func(_ context.Context, err error) { told = append(told, err) }}
	for i, step := range []struct {
		key  string
		err  error
		want []error // told by this write
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
		told, inner.err = nil, step.err
		if _, err := c.Put(t.Context(), step.key, nil, store.Any); !errors.Is(err, step.err) || !slices.Equal(told, step.want) {
			t.Errorf("write %d of %s: told %v, %v, want %v", i, step.key, told, err, step.want)
		}
	}
}
