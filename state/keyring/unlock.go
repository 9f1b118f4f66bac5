package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/fray-ml/fray/state"
)

// Unlock is what opens keys here. Its zero value opens plain ones, and those
// wrapped by a file.
type Unlock struct {
	// IdentityFiles are age identity files and SSH private keys: see
	// [Keyring.IdentityFiles]. Those that are absent or unfit are passed over
	// unless nothing else opens the key.
	IdentityFiles []string
	KMS           Openers
}

// Open returns the current secret, of state.KeySize bytes.
func (k *Keyring) Open(ctx context.Context, u Unlock) ([]byte, error) {
	secrets, err := k.OpenAll(ctx, u)
	return secrets.Current, err
}

// OpenAll returns the current secret and the former ones.
func (k *Keyring) OpenAll(ctx context.Context, u Unlock) (state.Secrets, error) {
	payload, err := k.unwrap(ctx, u)
	if err != nil {
		return state.Secrets{}, fmt.Errorf("open the stack's key: %w", err)
	}
	secrets, err := k.split(payload)
	if err != nil {
		return state.Secrets{}, fmt.Errorf("open the stack's key: %w", err)
	}
	return secrets, nil
}

// split takes apart what is wrapped.
func (k *Keyring) split(payload []byte) (state.Secrets, error) {
	if want := (1 + len(k.Former)) * state.KeySize; len(payload) != want {
		return state.Secrets{}, fmt.Errorf("%w: it holds %d bytes, want %d; %s", ErrDamaged, len(payload), want, putBack)
	}
	parts := slices.Collect(slices.Chunk(payload, state.KeySize))
	if err := k.checkSecret(parts[0]); err != nil {
		return state.Secrets{}, err
	}
	return state.Secrets{Current: parts[0], Former: parts[1:]}, nil
}

func (k *Keyring) unwrap(ctx context.Context, u Unlock) ([]byte, error) {
	switch k.Form {
	case FormPlain:
		return bytes.Clone(k.payload), nil
	case FormAge:
		return k.unwrapWithIdentities(u.IdentityFiles)
	case FormKMS:
		return k.unwrapWithService(ctx, u.KMS)
	}
	return nil, fmt.Errorf("there is no form %q", k.Form)
}

func (k *Keyring) unwrapWithService(ctx context.Context, services Openers) ([]byte, error) {
	service, err := services.open(ctx, k.KMSKey)
	if err == nil {
		var secret []byte
		if secret, err = service.Decrypt(ctx, k.payload); err == nil {
			return secret, nil
		}
	}
	if errors.Is(err, ErrDamaged) {
		return nil, fmt.Errorf("%w; %s", err, putBack)
	}
	return nil, &serviceError{key: k.KMSKey, err: err}
}

// serviceError is an ErrLocked that wraps what a service said, but never passes
// for an fs.ErrNotExist: credentials or a key file that are missing must not be
// taken for a stack without a key, which would get another one.
type serviceError struct {
	key string
	err error
}

func (e *serviceError) Error() string {
	return fmt.Sprintf("%v: it is wrapped by the KMS key %s: %v", ErrLocked, e.key, e.err)
}

// Is stands in for an Unwrap.
func (e *serviceError) Is(target error) bool {
	return target == ErrLocked || target != fs.ErrNotExist && errors.Is(e.err, target)
}

// As stands in for an Unwrap.
func (e *serviceError) As(target any) bool { return errors.As(e.err, target) }

func (k *Keyring) unwrapWithIdentities(paths []string) ([]byte, error) {
	var identities []age.Identity
	var tried []string
	for _, path := range paths {
		found, err := loadIdentities(path)
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s (%v)", path, err))
			continue
		}
		identities = append(identities, found...)
		tried = append(tried, path+" (of another recipient)")
	}
	if len(identities) == 0 {
		return nil, k.locked(tried)
	}
	secret, err := decryptAge(k.payload, identities)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, k.locked(tried)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; %s", ErrDamaged, err, putBack)
	}
	return secret, nil
}

func decryptAge(file []byte, identities []age.Identity) ([]byte, error) {
	content, err := age.Decrypt(bytes.NewReader(file), identities...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(content, (1+maxFormer)*state.KeySize+1)) // one more shows that it is too long
}

// locked says for whom the key is, what was tried, and what to do.
func (k *Keyring) locked(tried []string) error {
	text := "no identity file is known"
	if len(tried) > 0 {
		text = "tried " + strings.Join(tried, ", ")
	}
	return fmt.Errorf("%w: it is wrapped for %s; %s; set %s to the file of an identity that is one of these, "+
		"or ask one of them to add yours to the recipients and apply",
		ErrLocked, strings.Join(nameRecipients(k.Recipients), ", "), text, IdentityVariable)
}
