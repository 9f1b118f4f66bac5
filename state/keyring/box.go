package keyring

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/fray-ml/fray/state"
)

// Kind is what an encrypted document is.
type Kind string

// The kinds.
const (
	KindState   Kind = "state"
	KindJournal Kind = "journal" // an entry of the state's
	KindPlan    Kind = "plan"
	KindUsage   Kind = "usage"
)

// boxVersion is that of the encrypted documents which this fray writes.
const boxVersion = 1

// maxDocument is the longest document in bytes, before compression.
const maxDocument = 1 << 30

// Label is the plain part of an encrypted document, for readers without a key. The
// document does not open if it was changed.
type Label struct {
	Version    int      `json:"fray_encrypted"`
	Kind       Kind     `json:"kind"`
	Key        string   `json:"key"`                  // ID of the stack's key
	Recipients []string `json:"recipients,omitempty"` // whom to ask, by names for people
	KMSKey     string   `json:"kms_key,omitempty"`    // what wraps the key
}

// envelope is an encrypted document as it is written.
type envelope struct {
	Label
	Data []byte `json:"data"` // nonce and ciphertext of the compressed document
}

// Box encrypts the documents of one stack, and opens them. It may be used
// concurrently.
//
// A document is compressed with zstd and encrypted with AES-256-GCM, under a
// random nonce and a key that is derived from the stack's for this purpose
// alone; the Label is authenticated with it. Nothing is hidden about how long
// and how compressible a document is.
type Box struct {
	label Label // of all its documents, but for the kind
	aead  cipher.AEAD
	// former open what was encrypted with former keys, by the IDs of these.
	former map[string]cipher.AEAD
}

// Box returns what encrypts with the key that Open returned.
func (k *Keyring) Box(secret []byte) (*Box, error) { return k.BoxOf(state.Secrets{Current: secret}) }

// BoxOf returns what encrypts with the current key of those that OpenAll returned,
// and opens what any of them encrypted.
func (k *Keyring) BoxOf(secrets state.Secrets) (*Box, error) {
	if err := k.checkSecret(secrets.Current); err != nil {
		return nil, fmt.Errorf("use the stack's key: %w", err)
	}
	b := &Box{label: Label{Version: boxVersion, Key: k.ID, Recipients: nameRecipients(k.Recipients), KMSKey: k.KMSKey}, former: map[string]cipher.AEAD{}}
	var err error
	if b.aead, err = documentAEAD(secrets.Current); err != nil {
		return nil, err
	}
	for _, secret := range secrets.Former {
		id, err := ID(secret)
		if err != nil {
			return nil, err
		}
		if b.former[id], err = documentAEAD(secret); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func documentAEAD(secret []byte) (cipher.AEAD, error) {
	key, err := derive(secret, "fray document v1", state.KeySize)
	if err != nil {
		return nil, err
	}
	return newAEAD(key)
}

// Seal encrypts a document.
func (b *Box) Seal(kind Kind, plaintext []byte) ([]byte, error) {
	if len(plaintext) > maxDocument {
		return nil, fmt.Errorf("encrypt %s: it has %d bytes, want at most %d", kind, len(plaintext), maxDocument)
	}
	sealed := envelope{Label: b.label}
	sealed.Kind = kind
	label, err := json.Marshal(sealed.Label)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", kind, err)
	}
	compressed, err := state.Compress(plaintext)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", kind, err)
	}
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(compressed)+b.aead.Overhead())
	rand.Read(nonce) // never fails
	sealed.Data = b.aead.Seal(nonce, nonce, compressed, label)
	data, err := json.Marshal(sealed)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", kind, err)
	}
	return append(data, '\n'), nil
}

// Open decrypts what Seal returned for that kind.
func (b *Box) Open(kind Kind, data []byte) ([]byte, error) {
	plaintext, err := b.open(kind, data)
	if err != nil {
		return nil, fmt.Errorf("decrypt %s: %w", kind, err)
	}
	return plaintext, nil
}

func (b *Box) open(kind Kind, data []byte) ([]byte, error) {
	sealed, err := parseEnvelope(data)
	if err != nil {
		return nil, err
	}
	aead := b.aead
	if sealed.Key != b.label.Key {
		aead = b.former[sealed.Key]
	}
	if aead == nil {
		return nil, fmt.Errorf("%w: it needs the key %.40q%s, and this stack's is %q", ErrWrongKey, sealed.Key, sealed.holders(), b.label.Key)
	}
	label, err := json.Marshal(sealed.Label)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(sealed.Data) < aead.NonceSize() {
		return nil, fmt.Errorf("%w: it ends too early; put back a copy of it", ErrDamaged)
	}
	nonce, content := sealed.Data[:aead.NonceSize()], sealed.Data[aead.NonceSize():]
	compressed, err := aead.Open(content[:0], nonce, content, label)
	if err != nil {
		return nil, fmt.Errorf("%w: it is not what was written; put back a copy of it", ErrDamaged)
	}
	if sealed.Kind != kind {
		return nil, fmt.Errorf("%w: it is a %s", ErrWrongKind, sealed.Kind)
	}
	return decompress(compressed)
}

// String keeps the key out of messages.
func (b Box) String() string { return "(key " + b.label.Key + ")" }

// GoString keeps the key out of messages.
func (b Box) GoString() string { return b.String() }

// IsEncrypted reports whether data is an encrypted document, sound or not.
func IsEncrypted(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return false
	}
	name, err := decoder.Token()
	return err == nil && name == "fray_encrypted"
}

// ReadLabel returns the plain part of an encrypted document; nothing
// vouches for it.
func ReadLabel(data []byte) (Label, error) {
	sealed, err := parseEnvelope(data)
	return sealed.Label, err
}

// Locked is the error of reading an encrypted document without its key: an
// ErrLocked that names whom to ask, or what else is wrong with it.
func Locked(data []byte) error {
	sealed, err := parseEnvelope(data)
	if err != nil {
		return err
	}
	do := "read it where the key of its stack can be read"
	switch {
	case sealed.KMSKey != "":
		do = "have its owner let you decrypt with it"
	case len(sealed.Recipients) > 0:
		do = "set " + IdentityVariable + " to the file of an identity that is one of these"
	}
	return fmt.Errorf("%w: this %.40s is encrypted with the key %.40q%s; %s", ErrLocked, sealed.Kind, sealed.Key, sealed.holders(), do)
}

// holders names who can open the key, as far as the label does.
func (l Label) holders() string {
	switch {
	case l.KMSKey != "":
		return ", wrapped by the KMS key " + shorten(l.KMSKey, 200)
	case len(l.Recipients) > 0:
		return ", wrapped for " + shorten(strings.Join(l.Recipients, ", "), 400)
	}
	return ""
}

// parseEnvelope decodes once: documents are large.
func parseEnvelope(data []byte) (envelope, error) {
	if !IsEncrypted(data) {
		return envelope{}, fmt.Errorf("%w: it is no encrypted document", ErrDamaged)
	}
	var sealed envelope
	err := json.Unmarshal(data, &sealed)
	if err == nil && sealed.Version == boxVersion {
		return sealed, nil
	}
	var later struct { // may have everything else in other types
		Version int `json:"fray_encrypted"`
	}
	if json.Unmarshal(data, &later) == nil && later.Version > boxVersion {
		return envelope{}, fmt.Errorf("%w: its version is %d, and this fray knows up to %d; use a newer fray", ErrNewer, later.Version, boxVersion)
	}
	if err == nil {
		err = fmt.Errorf("there is no version %d", sealed.Version)
	}
	return envelope{}, fmt.Errorf("%w: %w; put back a copy of it", ErrDamaged, brief(err))
}

func decompress(compressed []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDocument))
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	defer decoder.Close()
	plaintext, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: decompress: %w", ErrDamaged, err)
	}
	return plaintext, nil
}

// brief is a mistake in JSON for people.
func brief(err error) error {
	if err.Error() == "unexpected end of JSON input" || err.Error() == "unexpected EOF" {
		return errors.New("it ends too early")
	}
	return err
}
