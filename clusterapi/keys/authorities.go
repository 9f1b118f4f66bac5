package keys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// DecodeAuthorities reads the content of the object at AuthoritiesKey.
func DecodeAuthorities(data []byte) ([]Authority, error) {
	var all authorities
	if err := store.Decode(data, &all); err != nil {
		return nil, fmt.Errorf("read the authorities of actors: %w", err)
	}
	return all.Authorities, nil
}

// WatchAuthorities calls changed with the object at AuthoritiesKey, as it is and whenever it
// has changed, until ctx ends. It is read at a pace.
func WatchAuthorities(ctx context.Context, s store.Store, pace time.Duration, changed func(store.Object)) {
	known := store.Absent
	for {
		object, err := store.GetUnless(ctx, s, AuthoritiesKey, known)
		if err == nil && object.Generation != known {
			known = object.Generation
			changed(object)
		}
		if errors.Is(err, store.ErrNotFound) {
			known = store.Absent
		}
		if !sleep.For(ctx, pace) {
			return
		}
	}
}
