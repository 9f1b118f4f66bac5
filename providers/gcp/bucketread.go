package gcp

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/state/store"
)

// Get returns an object whole, checked against the service's checksum.
func (b *Bucket) Get(ctx context.Context, key string) (store.Object, error) {
	var got store.Object
	object, err := b.object(key)
	if err == nil {
		err = b.retry(ctx, func() error {
			got, err = download(ctx, object)
			return err
		})
	}
	if err != nil {
		return store.Object{}, b.fail(opGet, key, b.absent(ctx, err))
	}
	got.Key = key
	return got, nil
}

// download reads an object in one request, so that content and generation
// belong together.
func download(ctx context.Context, object *storage.ObjectHandle) (store.Object, error) {
	// The library would let pass what comes without a checksum.
	r, err := object.NewReader(ctx, storage.WithDisableReaderChecksum())
	if err != nil {
		return store.Object{}, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		// Its text only: the library asks for the rest of this generation, and
		// when that has been replaced it is "not found", which the object is not.
		return store.Object{}, fmt.Errorf("%w: %s", errTorn, err.Error())
	}
	if sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); sum != r.Attrs.CRC32C {
		return store.Object{}, fmt.Errorf("%w: its CRC32C is %08x, of %08x", errTorn, sum, r.Attrs.CRC32C)
	}
	return store.Object{
		Attrs: store.Attrs{
			Generation: store.Generation(r.Attrs.Generation), Size: int64(len(data)), Updated: r.Attrs.LastModified,
		},
		Data: data,
	}, nil
}

// pageSize is the most that the service returns at once.
const pageSize = 1000

// List returns the attributes of every object whose key starts with prefix, by
// key, with one request for every thousand. What is under the bucket's prefix
// and has a name that is no key is left out: it is not the store's.
func (b *Bucket) List(ctx context.Context, prefix string) ([]store.Attrs, error) {
	if err := store.CheckPrefix(prefix); err != nil {
		return nil, b.fail(opList, prefix, err)
	}
	var found []store.Attrs
	for token := ""; ; {
		page, next, err := b.page(ctx, prefix, token, pageSize)
		if err != nil {
			return nil, b.fail(opList, prefix, err)
		}
		for _, attrs := range page {
			key := strings.TrimPrefix(attrs.Name, b.cfg.Prefix)
			if store.CheckKey(key) == nil {
				found = append(found, store.Attrs{
					Key: key, Generation: store.Generation(attrs.Generation), Size: attrs.Size, Updated: attrs.Updated,
				})
			}
		}
		if next == "" {
			return found, nil
		}
		token = next
	}
}

func (b *Bucket) page(ctx context.Context, prefix, token string, size int) (page []*storage.ObjectAttrs, next string, err error) {
	query := &storage.Query{Prefix: b.cfg.Prefix + prefix, Projection: storage.ProjectionNoACL}
	if err := query.SetAttrSelection([]string{"Name", "Generation", "Size", "Updated"}); err != nil {
		return nil, "", fmt.Errorf("select fields: %w", err)
	}
	err = b.retry(ctx, func() error {
		page = nil
		next, err = iterator.NewPager(b.bucket.Objects(ctx, query), size, token).NextPage(&page)
		return err
	})
	return page, next, err
}

// check returns an error unless the bucket is there and may be listed.
func (b *Bucket) check(ctx context.Context) error {
	_, _, err := b.page(ctx, "", "", 1)
	return err
}

// Open streams a blob. A connection that breaks is taken up again where it
// broke; content that is not what its checksum says ends in an error.
func (b *Bucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := b.object(key)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, b.fail(opOpen, key, err)
	}
	failures := &streak{tempo: b.tempo}
	r, err := object.Retryer(failures.retryer()...).NewReader(ctx)
	if err != nil {
		return nil, b.fail(opOpen, key, ended(ctx, b.absent(ctx, err)))
	}
	return &stream{reader: r, failures: failures}, nil
}

// stream is a blob that is read. Whatever arrives earns new patience.
type stream struct {
	reader   *storage.Reader
	failures *streak
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if n > 0 {
		s.failures.end()
	}
	return n, err
}

func (s *stream) Close() error { return s.reader.Close() }
