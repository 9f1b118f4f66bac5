package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/state/store"
)

// Metadata of every object.
const (
	writeMark = "fray-write" // random, unique to one write
	baseMark  = "fray-base"  // the generation that the write replaced
)

// write is one Put.
type write struct {
	data   []byte
	object string // its name
	mark   string
	// doubtful: an earlier try may have happened.
	doubtful bool
}

// Put writes an object whole if its present generation is want. It waits until
// the object's last write by this Bucket is [Bucket.WriteInterval] ago.
func (b *Bucket) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	gen, err := b.put(ctx, key, data, want)
	if err != nil {
		return 0, b.fail(opPut, key, b.homeless(ctx, err))
	}
	return gen, nil
}

func (b *Bucket) put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	object, err := b.object(key)
	if err != nil {
		return 0, err
	}
	own, err := b.pacers.enter(ctx, key)
	if err != nil {
		return 0, err
	}
	defer b.pacers.leave(own)
	w := &write{data: data, object: object, mark: rand.Text()}
	base := want
	if want == store.Any {
		base = own.seen
	}
	for {
		gen, err := b.swap(ctx, w, base)
		if err == nil || w.doubtful {
			b.pacers.wrote(own)
		}
		if err == nil {
			own.seen = gen
			return gen, nil
		}
		moved, isMoved := errors.AsType[*movedError](err)
		if want != store.Any || !isMoved {
			return 0, err
		}
		// Whichever client wrote, and whether an earlier try of ours was among them: it
		// is to be overwritten.
		base, w.doubtful = moved.present, false
	}
}

// movedError reports that another generation is there than was expected.
type movedError struct {
	present store.Generation // Absent if there is no object
	err     error
}

func (e *movedError) Error() string { return e.err.Error() }
func (e *movedError) Unwrap() error { return e.err }

var errUnsettled = errors.New("others have written it since, so whether this write came before theirs is unknown; " +
	"read it and write again if necessary")

// errBaseless reports that a write was rejected although what it expected is there:
// by something between here and the service, or by the service itself.
var errBaseless = client.Transient("the service rejects a write for another generation than the expected one, which is the present one")

// swap replaces the generation base, and tries again while that may help.
func (b *Bucket) swap(ctx context.Context, w *write, base store.Generation) (gen store.Generation, err error) {
	err = b.retry(ctx, func() error {
		gen, err = b.insert(ctx, w, base)
		switch status := apierror.StatusOf(err); {
		case status == http.StatusPreconditionFailed:
			gen, err = b.settle(ctx, w, base)
		case err != nil && status != http.StatusTooManyRequests && client.IsTransient(err):
			w.doubtful = true
		}
		return err
	})
	return gen, err
}

// insert is one request.
func (b *Bucket) insert(ctx context.Context, w *write, base store.Generation) (store.Generation, error) {
	object := b.content(w.object, w.mark, base)
	object.Crc32c = checksumText(crc32.Checksum(w.data, crc32.MakeTable(crc32.Castagnoli)))
	made, err := b.inserting(ctx, object, base).Media(bytes.NewReader(w.data), googleapi.ChunkSize(0)).Do()
	if err != nil {
		return 0, err
	}
	return store.Generation(made.Generation), nil
}

// content describes an object as every write makes it.
func (b *Bucket) content(name, mark string, base store.Generation) *storage.Object {
	return &storage.Object{
		Name: name, ContentType: "application/octet-stream",
		Metadata: map[string]string{writeMark: mark, baseMark: strconv.FormatInt(int64(base), 10)},
	}
}

// inserting is a write on condition that base is there. Its URL names the object, as that of other requests does.
func (b *Bucket) inserting(ctx context.Context, object *storage.Object, base store.Generation) *storage.ObjectsInsertCall {
	call := b.service.Objects.Insert(b.cfg.Bucket, object).Name(object.Name).Context(ctx).IfGenerationMatch(int64(base)) // 0: no object
	if b.cfg.KMSKey != "" {
		call.KmsKeyName(b.cfg.KMSKey)
	}
	return call
}

// checksumText is a CRC32C as the API writes it.
func checksumText(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// settle finds out what a failed precondition means: another writer was faster,
// or an earlier try of this very write has won and its reply was lost.
func (b *Bucket) settle(ctx context.Context, w *write, base store.Generation) (store.Generation, error) {
	attrs, err := b.stat(ctx, w.object)
	present := store.Absent
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return 0, fmt.Errorf("read the write's mark: %w", err)
	case attrs.Metadata[writeMark] == w.mark:
		return store.Generation(attrs.Generation), nil
	default:
		present = store.Generation(attrs.Generation)
	}
	// Only one write can have replaced base. If it is the one that is there,
	// it was not ours. (Or ours was deleted in between, and matters no more.)
	if present == base && (base != store.Absent || !w.doubtful) {
		return 0, errBaseless // nothing has replaced base
	}
	replacer := present != store.Absent && attrs.Metadata[baseMark] == strconv.FormatInt(int64(base), 10)
	if w.doubtful && !replacer {
		return 0, &movedError{present, errUnsettled}
	}
	return 0, &movedError{present, store.ErrConflict}
}

// stat returns an object's attributes, or ErrNotFound.
func (b *Bucket) stat(ctx context.Context, object string) (attrs *storage.Object, err error) {
	err = b.retry(ctx, func() error {
		attrs, err = b.reading(ctx, object).Do()
		return err
	})
	return attrs, b.absent(ctx, err)
}

// Delete removes an object whatever its generation.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	object, err := b.object(key)
	if err == nil {
		err = b.retry(ctx, func() error { return b.service.Objects.Delete(b.cfg.Bucket, object).Context(ctx).Do() })
	}
	if err = b.absent(ctx, err); err != nil && !errors.Is(err, store.ErrNotFound) {
		return b.fail(opDelete, key, err)
	}
	return nil
}
