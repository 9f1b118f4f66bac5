package stack

import (
	"crypto/sha256"
	"encoding/hex"
)

// Recording is a configuration as it is kept in the store: sealed, under the
// hash of that. The zero recording is none.
type Recording struct {
	Name string
	Data []byte
}

// RecordingOf is the recording of a sealed configuration.
func RecordingOf(sealed string) Recording {
	sum := sha256.Sum256([]byte(sealed))
	return Recording{Name: hex.EncodeToString(sum[:]), Data: []byte(sealed)}
}
