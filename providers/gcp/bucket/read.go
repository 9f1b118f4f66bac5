package bucket

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/state/store"
)

// Get returns an object whole, checked against the service's checksum.
func (b *Bucket) Get(ctx context.Context, key string) (store.Object, error) {
	object, err := b.object(key)
	return b.get(ctx, key, err, func() (store.Object, error) { return download(b.reading(ctx, object)) })
}

// GetUnless returns an object whole, or [store.ErrUnchanged] if its generation is known; the service
// compares, and sends no content then.
func (b *Bucket) GetUnless(ctx context.Context, key string, known store.Generation) (store.Object, error) {
	object, err := b.object(key)
	got, err := b.get(ctx, key, err, func() (store.Object, error) {
		return download(b.reading(ctx, object).IfGenerationNotMatch(int64(known)))
	})
	if err == nil && got.Generation == known { // of a service that ignores the condition
		return store.Object{}, fmt.Errorf("get %s: %w", key, store.ErrUnchanged)
	}
	return got, err
}

func (b *Bucket) get(ctx context.Context, key string, err error, read func() (store.Object, error)) (store.Object, error) {
	var got store.Object
	unchanged := false
	if err == nil {
		err = b.retry(ctx, func() error {
			got, err = read()
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

// reading is a request for an object or what it is.
func (b *Bucket) reading(ctx context.Context, object string) *storage.ObjectsGetCall {
	return b.service.Objects.Get(b.cfg.Bucket, object).Context(ctx).Projection("noAcl")
}

// download reads an object in one request, so that content and generation
// belong together.
func download(call *storage.ObjectsGetCall) (store.Object, error) {
	answer, err := call.Download()
	if err != nil {
		return store.Object{}, err
	}
	defer answer.Body.Close()
	is, err := headerOf(answer)
	if err != nil {
		return store.Object{}, fmt.Errorf("%w: %w", client.ErrDamaged, err)
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return store.Object{}, fmt.Errorf("%w: %w", client.ErrDamaged, err)
	}
	if sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); sum != is.checksum {
		return store.Object{}, fmt.Errorf("%w: its CRC32C is %08x, of %08x", client.ErrDamaged, sum, is.checksum)
	}
	return store.Object{Attrs: store.Attrs{Generation: is.generation, Size: int64(len(data)), Updated: is.updated}, Data: data}, nil
}

// header is what an answer with content states of it.
type header struct {
	generation store.Generation
	updated    time.Time
	checksum   uint32 // CRC32C
	checked    bool   // there is a checksum
}

func headerOf(answer *http.Response) (header, error) {
	generation, err := strconv.ParseInt(answer.Header.Get("X-Goog-Generation"), 10, 64)
	if err != nil {
		return header{}, fmt.Errorf("read which version it is: %w", err)
	}
	h := header{generation: store.Generation(generation)}
	if text := answer.Header.Get("Last-Modified"); text != "" {
		if h.updated, err = http.ParseTime(text); err != nil {
			return header{}, fmt.Errorf("read when it was written: %w", err)
		}
	}
	for sum := range strings.SplitSeq(strings.Join(answer.Header.Values("X-Goog-Hash"), ","), ",") {
		text, ok := strings.CutPrefix(strings.TrimSpace(sum), "crc32c=")
		if !ok {
			continue
		}
		bytes, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(bytes) != crc32.Size {
			return header{}, fmt.Errorf("its CRC32C is %q", text)
		}
		h.checksum, h.checked = binary.BigEndian.Uint32(bytes), true
	}
	return h, nil
}

// check returns an error unless the bucket is there and may be listed.
func (b *Bucket) check(ctx context.Context) error {
	_, err := b.page(ctx, query{prefix: b.cfg.Prefix}, "", 1)
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
	r := &stream{ctx: ctx, failures: &streak{tempo: b.tempo}, call: func() *storage.ObjectsGetCall { return b.reading(ctx, object) }}
	if err := r.open(); err != nil {
		return nil, b.fail(opOpen, key, client.Ended(ctx, b.absent(ctx, err)))
	}
	return r, nil
}
