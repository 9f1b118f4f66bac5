package bucket

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

// Content that is not what its key states, or that cannot be read to its end, makes no
// object, in however many requests it goes out.
func TestUploadsOfWrongContentMakeNothing(t *testing.T) {
	t.Parallel()
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	broken := errors.New("the disk is broken")
	for name, size := range map[string]int64{"one request": 100, "several chunks": 2*clienttest.Chunk + 100, "whole chunks": 2 * clienttest.Chunk} {
		key := store.BundlesPrefix + strings.Repeat("0", 64)
		if err := b.Upload(t.Context(), key, io.LimitReader(zeros{}, size)); err == nil || !strings.Contains(err.Error(), "it changed while it was read") {
			t.Errorf("%s of another content: %v", name, err)
		}
		content := io.MultiReader(io.LimitReader(zeros{}, size), iotest.ErrReader(broken))
		if err := b.Upload(t.Context(), "logs/large", content); !errors.Is(err, broken) {
			t.Errorf("%s of content that cannot be read: %v", name, err)
		}
	}
	if list, err := b.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("left %v, %v, want nothing", list, err)
	}
}
