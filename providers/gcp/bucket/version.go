package bucket

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/api/storage/v1"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/state/store"
)

var _ store.Versioned = (*Bucket)(nil)

// Versions returns an object's versions, newest first. The bucket keeps old
// ones if object versioning is on, for as long as its lifecycle rules state.
func (b *Bucket) Versions(ctx context.Context, key string) ([]store.Attrs, error) {
	found, err := b.versions(ctx, key)
	if err != nil {
		return found, b.fail(opVersions, key, err)
	}
	return found, nil
}

func (b *Bucket) versions(ctx context.Context, key string) ([]store.Attrs, error) {
	object, err := b.object(key)
	if err != nil {
		return nil, err
	}
	var found []store.Attrs
	for token, more := "", true; more; more = token != "" {
		page, err := b.page(ctx, query{prefix: object, versions: true}, token, pageSize)
		if err != nil {
			return nil, err
		}
		for _, attrs := range page.Items {
			if attrs.Name != object {
				continue // it only begins with it
			}
			attrs.Updated = attrs.TimeCreated // moving old ones to cheaper storage updates them
			version, err := attrsOf(key, attrs)
			if err != nil {
				return nil, err
			}
			found = append(found, version)
		}
		token = page.NextPageToken
	}
	slices.SortFunc(found, func(a, b store.Attrs) int { return cmp.Compare(b.Generation, a.Generation) })
	switch len(found) {
	case 0:
		return nil, store.ErrNotFound
	case 1:
		return found, b.versioning(ctx)
	}
	return found, nil
}

// versioning returns nil if the bucket keeps old versions.
func (b *Bucket) versioning(ctx context.Context) (err error) {
	var attrs *storage.Bucket
	err = b.retry(ctx, func() error {
		attrs, err = b.service.Buckets.Get(b.cfg.Bucket).Context(ctx).Projection("noAcl").Do()
		return ofBucket(err)
	})
	turnOn := fmt.Sprintf("turn object versioning on: gcloud storage buckets update gs://%s --versioning", b.cfg.Bucket)
	switch {
	case apierror.StatusOf(err) == http.StatusForbidden: // which roles/storage.objectUser does not include
		return fmt.Errorf("%w so far, and whether the bucket keeps any is not to be seen without the permission storage.buckets.get; if not, %s",
			store.ErrNoVersions, turnOn)
	case err != nil:
		return fmt.Errorf("check whether old versions are kept: %w", err)
	case attrs.Versioning == nil || !attrs.Versioning.Enabled:
		return fmt.Errorf("%w; %s", store.ErrNoVersions, turnOn)
	}
	return nil
}

// GetVersion returns one version whole, checked against the service's checksum.
func (b *Bucket) GetVersion(ctx context.Context, key string, gen store.Generation) (store.Object, error) {
	object, err := b.object(key)
	if err == nil && gen <= store.Absent {
		err = store.ErrNotFound
	}
	var got store.Object
	if err == nil {
		err = b.retry(ctx, func() error {
			got, err = download(b.reading(ctx, object).Generation(int64(gen)))
			return err
		})
	}
	if err != nil {
		return store.Object{}, b.fail(opGet, fmt.Sprintf("%s#%d", key, gen), b.absent(ctx, err))
	}
	got.Key = key
	return got, nil
}
