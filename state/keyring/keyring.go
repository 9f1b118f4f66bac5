package keyring

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/fray-ml/fray/state"
)

// ObjectKey is where a Keyring is kept in the stack's store. It is written
// under the precondition that it is absent, by the first process that needs it, and
// replaced under the generation that was read.
const ObjectKey = "key.json"

// Version is the newest one of a key object that this fray knows. It writes
// version 1, which former versions of fray read, unless there are former keys.
const (
	Version       = 2
	versionSingle = 1
)

// maxFormer is how many former keys an object may have: one for each `fray state
// rekey` in a row that did not come to its end.
const maxFormer = 64

// TooManyFormerError is an object that would have more former keys than any may:
// each is needed for as long as something is sealed with it.
type TooManyFormerError struct{ Keys int }

func (e *TooManyFormerError) Error() string {
	return fmt.Sprintf("there would be %d former keys, and at most %d are kept: that many `fray state rekey` in a row did not come to their end; "+
		"run `fray plan` to see that the state can be read, then `fray apply` or `fray watch`, which finishes the last one and removes the former keys", e.Keys, maxFormer)
}

// Errors to be tested with errors.Is.
var (
	// ErrLocked: nothing at hand opens the key; the message names what would.
	ErrLocked = errors.New("the stack's key cannot be opened here")
	// ErrWrongKey: a document was encrypted with another key than this one.
	ErrWrongKey = errors.New("it was encrypted with another key")
	// ErrWrongKind: a document is sound, but not of the kind that is wanted.
	ErrWrongKind = errors.New("it is another kind of document")
	// ErrDamaged: a key object, wrapped key or document is not one, not whole,
	// or was changed.
	ErrDamaged = errors.New("it is damaged")
	// ErrNewer: a newer fray wrote it, in a format that this one does not know.
	ErrNewer = errors.New("it was written by a newer fray")
)

// Form is how a stack's key is kept.
type Form string

// The forms.
const (
	FormPlain Form = "plain"
	FormAge   Form = "age"
	FormKMS   Form = "kms"
)

// Header is the plain part of a key object.
type Header struct {
	Version    int       `json:"fray_key"`
	ID         string    `json:"id"`      // of the key: ID
	Created    time.Time `json:"created"` // the key, whatever wraps it since
	Form       Form      `json:"form"`
	Recipients []string  `json:"recipients,omitempty"` // of FormAge, as declared
	KMSKey     string    `json:"kms_key,omitempty"`    // of FormKMS, scheme included
	// Former are the IDs of earlier keys, newest first. They are kept as long as
	// what they sealed has not been sealed anew.
	Former []string `json:"former,omitempty"`
}

// Keyring is a stack's key as it is kept.
type Keyring struct {
	Header
	payload []byte // the key and the former ones after it, wrapped according to Form
	mac     []byte // of all the rest, by the key
}

// object is a Keyring as it is written.
type object struct {
	Header
	Payload []byte `json:"payload"`
	MAC     []byte `json:"mac"`
}

const idSize = 8 // bytes

// ID names a key without telling anything of it: 16 hexadecimal digits.
func ID(secret []byte) (string, error) {
	id, err := derive(secret, "fray key v1 id", idSize)
	return hex.EncodeToString(id), err
}

func derive(secret []byte, purpose string, size int) ([]byte, error) {
	if len(secret) != state.KeySize {
		return nil, fmt.Errorf("the stack's key has %d bytes, want %d", len(secret), state.KeySize)
	}
	derived, err := hkdf.Key(sha256.New, secret, nil, purpose, size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return derived, nil
}

// New makes a random key and wraps it as the policy asks for. The secret is of
// state.KeySize bytes.
func New(ctx context.Context, p Policy, services Openers) (k *Keyring, secret []byte, err error) {
	secret = make([]byte, state.KeySize)
	rand.Read(secret) // never fails
	k, err = Wrap(ctx, secret, p, services)
	if err != nil {
		return nil, nil, err
	}
	return k, secret, nil
}

// Wrap is New for a key that exists.
func Wrap(ctx context.Context, secret []byte, p Policy, services Openers) (*Keyring, error) {
	w, err := p.wrapper(services)
	if err != nil {
		return nil, err
	}
	return wrap(ctx, state.Secrets{Current: secret}, w, now())
}

// Rewrap wraps keys as another policy asks for, this object's key among them: as
// the current one, or as a former one after a new one. What is not among them
// opens nothing any more. With the same key it does not lock out who could open
// it so far.
func (k *Keyring) Rewrap(ctx context.Context, secrets state.Secrets, p Policy, services Openers) (*Keyring, error) {
	if err := k.among(secrets); err != nil {
		return nil, fmt.Errorf("wrap the stack's key: %w", err)
	}
	w, err := p.wrapper(services)
	if err != nil {
		return nil, err
	}
	created := k.Created
	if id, err := ID(secrets.Current); err != nil || id != k.ID {
		created = now()
	}
	return wrap(ctx, secrets, w, created)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// among returns why the key of this object is not one of these.
func (k *Keyring) among(secrets state.Secrets) error {
	for _, former := range secrets.Former {
		if id, err := ID(former); err == nil && id == k.ID {
			return k.checkSecret(former)
		}
	}
	return k.checkSecret(secrets.Current)
}

// Policy is how the key is wrapped.
func (k *Keyring) Policy() Policy { return Policy{Recipients: k.Recipients, KMSKey: k.KMSKey} }

// Matches reports whether the key is wrapped as the policy asks for, whatever
// the order of the recipients.
func (k *Keyring) Matches(p Policy) bool {
	want := p.normal()
	if k.Form != p.form() || k.KMSKey != want.KMSKey || len(k.Recipients) != len(want.Recipients) {
		return false
	}
	for _, r := range want.Recipients {
		if !slices.ContainsFunc(k.Recipients, func(have string) bool { return sameRecipient(have, r) }) {
			return false
		}
	}
	return true
}

// wrapper is a sound policy with what it takes to carry it out.
type wrapper struct {
	Policy
	services Openers
}

func (p Policy) wrapper(services Openers) (wrapper, error) {
	return wrapper{p.normal(), services}, p.Validate()
}

func wrap(ctx context.Context, secrets state.Secrets, w wrapper, created time.Time) (*Keyring, error) {
	id, err := ID(secrets.Current)
	if err != nil {
		return nil, fmt.Errorf("wrap the stack's key: %w", err)
	}
	k := &Keyring{Header: Header{
		Version: versionSingle, ID: id, Created: created, Form: w.form(), Recipients: w.Recipients, KMSKey: w.KMSKey,
	}}
	if n := len(secrets.Former); n > maxFormer {
		return nil, fmt.Errorf("wrap the stack's key: %w", &TooManyFormerError{Keys: n})
	}
	payload := bytes.Clone(secrets.Current)
	for _, former := range secrets.Former {
		if id, err = ID(former); err != nil {
			return nil, fmt.Errorf("wrap a former key of the stack: %w", err)
		}
		k.Version, k.Former, payload = Version, append(k.Former, id), append(payload, former...)
	}
	if k.payload, err = w.payload(ctx, payload); err != nil {
		return nil, fmt.Errorf("wrap the stack's key: %w", err)
	}
	if k.mac, err = k.sum(secrets.Current); err != nil {
		return nil, fmt.Errorf("wrap the stack's key: %w", err)
	}
	return k, nil
}

func (w wrapper) payload(ctx context.Context, secret []byte) ([]byte, error) {
	switch w.form() {
	case FormPlain:
		return bytes.Clone(secret), nil
	case FormAge:
		return wrapForRecipients(secret, w.Recipients)
	case FormKMS:
		service, err := w.services.open(ctx, w.KMSKey)
		if err != nil {
			return nil, err
		}
		return service.Encrypt(ctx, secret)
	}
	return nil, fmt.Errorf("there is no form %q", w.form())
}

func wrapForRecipients(secret []byte, texts []string) ([]byte, error) {
	recipients, err := parseRecipients(texts)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	w, err := age.Encrypt(&file, recipients...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(secret); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// sum is the MAC of everything but itself: who can write the object, but does
// not know the key, cannot change a bit of it.
func (k *Keyring) sum(secret []byte) ([]byte, error) {
	key, err := derive(secret, "fray key v1 object", sha256.Size)
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(k.Header)
	if err != nil {
		return nil, fmt.Errorf("encode header: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(header)
	mac.Write(k.payload)
	return mac.Sum(nil), nil
}

// checkSecret returns why a secret is not the key of this object, or the
// object not the one that was written.
func (k *Keyring) checkSecret(secret []byte) error {
	id, err := ID(secret)
	if err != nil {
		return err
	}
	if id != k.ID {
		return fmt.Errorf("%w: it claims to hold the key %s and holds %s; %s", ErrDamaged, k.ID, id, putBack)
	}
	mac, err := k.sum(secret)
	if err != nil {
		return err
	}
	if !hmac.Equal(mac, k.mac) {
		return fmt.Errorf("%w: it was changed by hand; %s", ErrDamaged, putBack)
	}
	return nil
}

const putBack = "put back an older version of " + ObjectKey + ": without the key, what was sealed with it cannot be read"

// Encode is the object as it is kept in the store.
func (k *Keyring) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(object{k.Header, k.payload, k.mac}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the stack's key: %w", err)
	}
	return append(data, '\n'), nil
}

// Parse reads what Encode wrote. Whether it is as it was written is only known
// when it is opened.
func Parse(data []byte) (*Keyring, error) {
	var version struct { // a newer one may have everything else in other types
		Version int `json:"fray_key"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, damagedKey(data, err)
	}
	if version.Version < 1 {
		return nil, damagedKey(data, errors.New("it is no key of fray"))
	}
	if version.Version > Version {
		return nil, fmt.Errorf("read the stack's key: %w: its version is %d, and this fray knows up to %d; use a newer fray",
			ErrNewer, version.Version, Version)
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, damagedKey(data, err)
	}
	k := &Keyring{Header: o.Header, payload: o.Payload, mac: o.MAC}
	if err := k.check(); err != nil {
		return nil, damagedKey(data, err)
	}
	return k, nil
}

func (k *Keyring) check() error {
	if id, err := hex.DecodeString(k.ID); err != nil || len(id) != idSize {
		return fmt.Errorf("it has no id: %.40q", k.ID)
	}
	recipients, service := len(k.Recipients) > 0, k.KMSKey != ""
	var fits bool
	switch k.Form {
	case FormPlain:
		fits = !recipients && !service
	case FormAge:
		fits = recipients && !service
	case FormKMS:
		fits = service && !recipients
	default:
		return fmt.Errorf("there is no form %.40q", k.Form)
	}
	if !fits {
		return fmt.Errorf("it has %d recipients and the KMS key %q, which does not go with the form %s", len(k.Recipients), k.KMSKey, k.Form)
	}
	if len(k.payload) == 0 || len(k.mac) == 0 {
		return errors.New("it holds no key")
	}
	if len(k.Former) > maxFormer || (len(k.Former) > 0) != (k.Version > versionSingle) {
		return fmt.Errorf("it names %d former keys, which does not go with version %d", len(k.Former), k.Version)
	}
	return nil
}

func damagedKey(data []byte, reason error) error {
	if len(bytes.TrimSpace(data)) == 0 {
		reason = errors.New("it is empty")
	}
	return fmt.Errorf("read the stack's key: %w: %w; %s", ErrDamaged, brief(reason), putBack)
}

// String keeps the key out of messages.
func (k Keyring) String() string { return "(key " + k.ID + ", " + string(k.Form) + ")" }

// GoString keeps the key out of messages.
func (k Keyring) GoString() string { return k.String() }
