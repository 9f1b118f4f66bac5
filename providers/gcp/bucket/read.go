package bucket

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/state/store"
)

// Get returns an object whole, checked against the service's checksum.
func (b *Bucket) Get(ctx context.Context, key string) (store.Object, error) {
	object, err := b.object(key)
	return b.get(ctx, key, object, err)
}

// GetUnless returns an object whole, or [store.ErrUnchanged] if its generation is known; the service
// compares, and sends no content then.
func (b *Bucket) GetUnless(ctx context.Context, key string, known store.Generation) (store.Object, error) {
	object, err := b.object(key)
	if err == nil {
		object = object.If(storage.Conditions{GenerationNotMatch: int64(known)})
	}
	got, err := b.get(ctx, key, object, err)
	if err == nil && got.Generation == known { // of a service that ignores the condition
		return store.Object{}, fmt.Errorf("get %s: %w", key, store.ErrUnchanged)
	}
	return got, err
}

func (b *Bucket) get(ctx context.Context, key string, object *storage.ObjectHandle, err error) (store.Object, error) {
	var got store.Object
	unchanged := false
	if err == nil {
		err = b.retry(ctx, func() error {
			got, err = download(ctx, object)
			if answer, ok := errors.AsType[*googleapi.Error](err); ok && answer.Code == http.StatusNotModified {
				unchanged, err = true, nil
			}
			return err
		})
	}
	if err == nil && unchanged {
		return store.Object{}, fmt.Errorf("get %s: %w", key, store.ErrUnchanged)
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
		return store.Object{}, fmt.Errorf("%w: %s", client.ErrDamaged, err.Error())
	}
	if sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); sum != r.Attrs.CRC32C {
		return store.Object{}, fmt.Errorf("%w: its CRC32C is %08x, of %08x", client.ErrDamaged, sum, r.Attrs.CRC32C)
	}
	return store.Object{
		Attrs: store.Attrs{
			Generation: store.Generation(r.Attrs.Generation), Size: int64(len(data)), Updated: r.Attrs.LastModified,
		},
		Data: data,
	}, nil
}

// check returns an error unless the bucket is there and may be listed.
func (b *Bucket) check(ctx context.Context) error {
	_, _, err := b.page(ctx, storage.Query{Prefix: b.cfg.Prefix}, "", 1)
	return err
}

// Open streams a blob. A connection that breaks is taken up again where it
// broke; content that does not match its checksum ends in an error.
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
		return nil, b.fail(opOpen, key, client.Ended(ctx, b.absent(ctx, err)))
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
