package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/state/store"
)

// indexKey is where the list of a bundle's parts is. It is no digest, so stores
// do not check it against one.
func indexKey(sum string) string { return store.BundleKey(sum) + indexSuffix }

const indexSuffix = ".parts"

// IsIndex reports whether a key is that of a bundle's list of parts, whose last
// part is no digest of its content as that of the blobs beside it is.
func IsIndex(key string) bool {
	return strings.HasPrefix(key, store.BundlesPrefix) && strings.HasSuffix(key, indexSuffix)
}

// indexFormat changes when an older fray could misread an index.
const indexFormat = 1

// index is a manifest as it is stored.
type index struct {
	Format int `json:"format"`
	Manifest
}

func encodeIndex(m Manifest) ([]byte, error) {
	data, err := json.MarshalIndent(index{Format: indexFormat, Manifest: m}, "", "  ")
	return append(data, '\n'), err
}

// decodeIndex reads the index of a bundle. Digests become names of files: they
// are digests indeed when it returns no error.
func decodeIndex(data []byte, sum string) (Manifest, error) {
	var x index
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&x); err != nil {
		return Manifest{}, fmt.Errorf("it is no index of a bundle: %w", err)
	}
	switch {
	case x.Format > indexFormat:
		return Manifest{}, fmt.Errorf("it has format %d and this fray reads %d; update fray", x.Format, indexFormat)
	case x.Format != indexFormat || len(x.Parts) == 0:
		return Manifest{}, errors.New("it is no index of a bundle")
	case x.Sum != sum:
		return Manifest{}, fmt.Errorf("it is the index of %q", x.Sum)
	}
	// What does not compress takes a little more than it is.
	left := int64(MaxSize + MaxSize/16)
	for i, p := range x.Parts {
		if !isSum(p.Sum) || p.Size <= 0 {
			return Manifest{}, fmt.Errorf("part %d has the digest %q and %d bytes", i+1, p.Sum, p.Size)
		}
		if left -= p.Size; left < 0 {
			return Manifest{}, errors.New("its parts have more bytes than a bundle may")
		}
	}
	return x.Manifest, nil
}

// isSum reports whether s is a SHA-256 in lower-case hex.
func isSum(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && hex.EncodeToString(raw) == s
}
