package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/state/store"
)

// Upload writes a blob if there is none under the key. The last part of a key
// below [store.BundlesPrefix] must be the content's SHA-256 in hex; other
// content is rejected. What takes more than one request is not sent when it is
// there already; what does not is sent on condition that it is not.
func (b *Bucket) Upload(ctx context.Context, key string, content io.Reader) error {
	if err := b.upload(ctx, key, content); err != nil {
		return b.fail(opUpload, key, client.Ended(ctx, err))
	}
	return nil
}

func (b *Bucket) upload(ctx context.Context, key string, content io.Reader) error {
	object, err := b.object(key)
	if err != nil {
		return err
	}
	sum := sha256.New()
	source := io.TeeReader(contextReader{ctx, content}, sum)
	verify := func() error {
		if got := hex.EncodeToString(sum.Sum(nil)); strings.HasPrefix(key, store.BundlesPrefix) && got != path.Base(key) {
			return fmt.Errorf("the content's SHA-256 is %s: it changed while it was read, or the key is wrong", got)
		}
		return nil
	}
	var first bytes.Buffer
	_, err = io.CopyN(&first, source, int64(b.tempo.Chunk))
	switch {
	case errors.Is(err, io.EOF): // it fits into one request
		if err = verify(); err == nil {
			w := &write{data: first.Bytes(), object: object, mark: rand.Text()}
			_, err = b.swap(ctx, w, store.Absent)
		}
	case err == nil:
		if _, err := b.stat(ctx, object); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		err = b.uploadChunks(ctx, object, io.MultiReader(&first, source), verify)
	}
	return b.homeless(ctx, existing(err))
}

// existing is nil where an error says that the blob is there.
func existing(err error) error {
	moved, ok := errors.AsType[*movedError](err)
	if ok && moved.present != store.Absent || apierror.StatusOf(err) == http.StatusPreconditionFailed {
		return nil
	}
	return err
}

// uploadChunks sends content in chunks, each as often as it takes. The last
// one, which makes the object, goes out once verify has agreed.
func (b *Bucket) uploadChunks(ctx context.Context, object string, content io.Reader, verify func() error) error {
	failures := &streak{tempo: b.tempo}
	backoff := failures.backoff()
	_, err := b.inserting(ctx, b.content(object, rand.Text(), store.Absent), store.Absent).
		Media(&verifiedReader{content, verify}, googleapi.ChunkSize(b.tempo.Chunk), googleapi.ChunkRetryDeadline(b.tempo.Patience), googleapi.EnableAutoChecksum()).
		ProgressUpdater(func(int64, int64) { failures.end() }).
		WithRetry(&backoff, failures.goesOn).
		Do()
	return err
}

// verifiedReader ends with an error where its content is rejected.
type verifiedReader struct {
	r      io.Reader
	verify func() error
}

func (v *verifiedReader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	if errors.Is(err, io.EOF) {
		if rejected := v.verify(); rejected != nil {
			return n, rejected
		}
	}
	return n, err
}

// contextReader ends a copy when its context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
