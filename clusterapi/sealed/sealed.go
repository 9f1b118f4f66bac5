// Package sealed keeps messages between a host and the controller that leads secret from the
// host that passes them on, which can neither read nor make nor repeat them: HPKE (RFC 9180)
// to a key in the lease gives both ends two keys, one for each direction (ChaCha20-Poly1305).
//
// It leaves out who a host is: the token of a relayed host vouches for its [Offer]. Start with
// [Dial] and [LeaderKey].
package sealed

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// Offer is what a host sends once and in clear, for the controller to know the keys: a public
// key that was made for one channel.
type Offer []byte

// Name is the offer as a token has it.
func (o Offer) Name() string { return hex.EncodeToString(o) }

// LeaderKey is the controller's private key of one term.
type LeaderKey struct{ private hpke.PrivateKey }

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// NewLeaderKey makes the key of a term.
func NewLeaderKey() (*LeaderKey, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("make the key of a term: %w", err)
	}
	return &LeaderKey{private}, nil
}

// Public is the key as the lease has it.
func (k *LeaderKey) Public() []byte { return k.private.PublicKey().Bytes() }

// The directions of a channel, which derive their keys.
const (
	up   = "to the controller"
	down = "to the host"
)

// Dial is a host's end of a new channel to the controller with a public key.
func Dial(leader []byte, slice string, host int) (*Channel, Offer, error) {
	public, err := kem().NewPublicKey(leader)
	if err != nil {
		return nil, nil, fmt.Errorf("read the controller's key: %w", err)
	}
	offer, sender, err := hpke.NewSender(public, hpke.HKDFSHA256(), hpke.ExportOnly(), purpose(slice, host))
	if err != nil {
		return nil, nil, fmt.Errorf("make the keys of a channel: %w", err)
	}
	c, err := newChannel(sender.Export, up, down)
	return c, offer, err
}

// Accept is the controller's end of a channel that a host has offered.
func (k *LeaderKey) Accept(offer Offer, slice string, host int) (*Channel, error) {
	recipient, err := hpke.NewRecipient(offer, k.private, hpke.HKDFSHA256(), hpke.ExportOnly(), purpose(slice, host))
	if err != nil {
		return nil, fmt.Errorf("take up a channel: %w", err)
	}
	return newChannel(recipient.Export, down, up)
}

func purpose(slice string, host int) []byte {
	return fmt.Appendf(nil, "fray host %s %d", slice, host)
}

// Channel is one end. One caller may seal while another one opens.
type Channel struct {
	out, in        [chacha20poly1305.KeySize]byte // keys
	sealed, opened uint64                         // the numbers of the last messages
}

func newChannel(export func(string, int) ([]byte, error), out, in string) (*Channel, error) {
	c := &Channel{}
	for _, each := range []struct {
		key  *[chacha20poly1305.KeySize]byte
		name string
	}{{&c.out, out}, {&c.in, in}} {
		derived, err := export(each.name, len(each.key))
		if err != nil {
			return nil, fmt.Errorf("derive the keys of a channel: %w", err)
		}
		copy(each.key[:], derived)
	}
	return c, nil
}

// number is how many bytes the number of a message takes, before what is sealed.
const number = 8

// Seal returns a message for the other end.
func (c *Channel) Seal(plain []byte) ([]byte, error) {
	aead, err := aeadOf(&c.out)
	if err != nil {
		return nil, err
	}
	c.sealed++
	message := make([]byte, number, number+len(plain)+aead.Overhead())
	binary.BigEndian.PutUint64(message, c.sealed)
	return aead.Seal(message, nonce(message, aead), plain, nil), nil
}

// errForged is of a message that the other end did not seal, or that was opened before it or
// a later one: it is to be left out.
var errForged = errors.New("the message is not the other end's, or came before")

// Open returns what the other end has sealed. Messages may be lost, but not come twice or late.
func (c *Channel) Open(message []byte) ([]byte, error) {
	if len(message) < number {
		return nil, errForged
	}
	n := binary.BigEndian.Uint64(message)
	if n <= c.opened {
		return nil, errForged
	}
	aead, err := aeadOf(&c.in)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce(message[:number], aead), message[number:], nil)
	if err != nil {
		return nil, errForged
	}
	c.opened = n
	return plain, nil
}

// nonce is that of a message's number, which a key has once.
func nonce(number []byte, aead cipher.AEAD) []byte {
	n := make([]byte, aead.NonceSize())
	copy(n[len(n)-len(number):], number)
	return n
}

// aeadOf is made for each message, of which it takes less than the bytes of a key schedule.
func aeadOf(key *[chacha20poly1305.KeySize]byte) (cipher.AEAD, error) {
	aead, err := chacha20poly1305.New(key[:])
	if err != nil {
		return nil, fmt.Errorf("seal a message: %w", err)
	}
	return aead, nil
}
