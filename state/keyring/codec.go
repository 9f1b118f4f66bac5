package keyring

import (
	"errors"
	"fmt"

	"github.com/fray-ml/fray/state"
)

// Codec writes documents of the state as its stack's policy says, and reads
// them encrypted or not, so that a policy that was changed holds from the next
// write on. The zero Codec writes in clear, and refuses what is encrypted.
type Codec struct {
	Box     *Box // nil: the key is not at hand
	Encrypt bool // whether Encode encrypts: Policy.Encrypts
}

var _ state.Codec = Codec{}

// Encode is state.Encode, encrypted if asked for.
func (c Codec) Encode(d state.Document) ([]byte, error) {
	if c.Encrypt && c.Box == nil {
		return nil, errors.New("encode state: it is to be encrypted, and the stack's key is not at hand")
	}
	data, err := state.Encode(d)
	if err != nil || !c.Encrypt {
		return data, err
	}
	return c.Box.Seal(KindState, data)
}

// Decode is state.Decode of what Encode wrote, with the errors of both
// packages: what is damaged or newer is so for either.
func (c Codec) Decode(data []byte) (state.Document, error) {
	if !IsEncrypted(data) {
		return state.Decode(data)
	}
	if c.Box == nil {
		return state.Document{}, classify(Locked(data))
	}
	plain, err := c.Box.Open(KindState, data)
	if err != nil {
		return state.Document{}, classify(err)
	}
	return state.Decode(plain)
}

// classify adds the error by which users of package state know what it is.
func classify(err error) error {
	switch {
	case errors.Is(err, ErrLocked):
		return &encryptedError{err}
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w: %w", state.ErrDamaged, err)
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("%w: %w", state.ErrNewer, err)
	}
	return err
}

// encryptedError is a state.ErrEncrypted that says more: whom to ask.
type encryptedError struct{ locked error }

func (e *encryptedError) Error() string { return e.locked.Error() }

func (e *encryptedError) Unwrap() []error { return []error{e.locked, state.ErrEncrypted} }
