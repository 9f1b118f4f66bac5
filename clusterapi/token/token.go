// Package token makes and checks the bearer tokens of the cluster API: JSON Web
// Tokens signed with Ed25519. A private key never leaves the process, or the host,
// that signs with it; its public key lies in the stack's store, and where it lies
// says what it may sign: see [Role]. So a token proves that its signer may write
// there. Reading the store is not enough.
//
// A token names its subject. What they may do, and whether the attempt of
// a job's token still runs, is the controller's to know. The package has no
// clock, no randomness and no store: those are arguments. Package clusterapi/keys
// publishes and finds keys.
//
// Start with [Signer] and [Verifier].
package token

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// UserLife is how long the token of a user holds. They are made for each
// command anew.
const UserLife = 10 * time.Minute

// Subject is the kind of bearer, a closed set.
type Subject string

// The subjects.
const (
	SubjectJob        Subject = "job"        // the tasks of one attempt of a job
	SubjectUser       Subject = "user"       // a person who may write to the stack's store
	SubjectHost       Subject = "host"       // an agent
	SubjectController Subject = "controller" // `fray watch`, to agents
	// SubjectRelayed is an agent that speaks to the controller through another host. Its
	// token is good for nothing else, since that host has it, too.
	SubjectRelayed Subject = "relayed"
)

func (s Subject) valid() bool {
	switch s {
	case SubjectJob, SubjectUser, SubjectHost, SubjectController, SubjectRelayed:
		return true
	}
	return false
}

// Claims are what a token asserts of its bearer.
type Claims struct {
	Stack   string // the mark of the stack that it belongs to
	Subject Subject
	// Namespace, JobID and Attempt of a job's token.
	Namespace string
	JobID     string
	Attempt   int
	// User is a user's name.
	User string
	// Key is, of a relayed host, the public key for which it vouches: only the holder of
	// the private one speaks for the host.
	Key string
	// Expires is when it ceases to hold, to the second. It is zero for the
	// token of a job, which holds as long as its attempt runs.
	Expires time.Time
	// Signer is whose key signed it, as Verify found; Mint takes no notice of it.
	Signer ID
}

// validate returns what the claims lack for their subject.
func (c Claims) validate() error {
	switch {
	case c.Stack == "":
		return errors.New("it names no stack")
	case !c.Subject.valid():
		return fmt.Errorf("unknown subject %q", c.Subject)
	case c.Subject == SubjectJob && (c.JobID == "" || c.Attempt < 1 || c.Namespace == ""):
		return errors.New("a job's token needs its namespace, job and attempt")
	case (c.Subject == SubjectRelayed) != (c.Key != ""):
		return errors.New("the token of a relayed host needs a key, and no other has one")
	case c.Subject != SubjectJob && c.Expires.IsZero():
		return fmt.Errorf("the token of a %s needs an end", c.Subject)
	}
	return nil
}

// Errors of Verify, to be tested with errors.Is.
var (
	ErrMalformed  = errors.New("the token is malformed")
	ErrExpired    = errors.New("the token has expired")
	ErrOtherStack = errors.New("the token is another stack's")
	ErrSignature  = errors.New("the token was not signed with the key that it names")
	// ErrFormerSignature is of tokens that former versions of fray made, which
	// every reader of a stack's store could make as well.
	ErrFormerSignature = errors.New("the token is of a former version of fray")
	// ErrUnknownKey is for a Source that has no such key.
	ErrUnknownKey = errors.New("the key that signed the token is not published")
	// ErrRole means that a key signed what keys of its role may not sign.
	ErrRole = errors.New("the key that signed the token may not sign such a token")
)

// Rejected reports whether an error of Verify is a verdict on the token: the others
// say that its key could not be looked up.
func Rejected(err error) bool {
	return slices.ContainsFunc([]error{ErrMalformed, ErrExpired, ErrOtherStack, ErrSignature, ErrFormerSignature, ErrUnknownKey, ErrRole},
		func(verdict error) bool { return errors.Is(err, verdict) })
}

// Signer mints tokens. It may be used concurrently.
type Signer struct {
	key   ed25519.PrivateKey
	id    ID
	stack string
}

// NewSigner returns the Signer of a role for the stack of a mark. at is whose key
// it is; its Sum is filled in.
func NewSigner(key ed25519.PrivateKey, stack string, at ID) (*Signer, error) {
	if stack == "" {
		return nil, errors.New("make tokens: the stack has no mark yet; run fray apply once")
	}
	public, _ := key.Public().(ed25519.PublicKey)
	at.Sum = Sum(public)
	if _, err := ParseID(at.String()); err != nil {
		return nil, fmt.Errorf("make tokens: %w", err)
	}
	return &Signer{key: key, id: at, stack: stack}, nil
}

// ID names the signer's key.
func (s *Signer) ID() ID { return s.id }

// Public is the signer's key as it is published.
func (s *Signer) Public() ed25519.PublicKey {
	public, _ := s.key.Public().(ed25519.PublicKey)
	return public
}

// Mint returns a token with the claims c. The stack may be left out. The same claims
// give the same token.
func (s *Signer) Mint(c Claims) (string, error) {
	if c.Stack == "" {
		c.Stack = s.stack
	}
	if err := c.validate(); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	w := wire{Stack: c.Stack, Subject: c.Subject, Namespace: c.Namespace, Job: c.JobID, Attempt: c.Attempt, User: c.User, Key: c.Key}
	if !c.Expires.IsZero() {
		w.Expires = c.Expires.Unix()
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, w)
	unsigned.Header["kid"] = s.id.String()
	signed, err := unsigned.SignedString(s.key)
	if err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return signed, nil
}

// Source finds published keys.
type Source interface {
	// Key returns the key that an ID names, or an ErrUnknownKey; any other error
	// says that it could not be looked up.
	Key(ctx context.Context, id ID) (Key, error)
}

// Verifier verifies the tokens of one stack. It may be used concurrently.
type Verifier struct {
	stack  string
	keys   Source
	parser *jwt.Parser

	mu     sync.Mutex
	signed map[string]Claims // of tokens whose signature was checked
}

// maxSigned bounds the memory for tokens that come again and again.
const maxSigned = 4096

// NewVerifier returns the Verifier for the stack of a mark.
func NewVerifier(stack string, keys Source) (*Verifier, error) {
	if stack == "" {
		return nil, errors.New("check tokens: the stack has no mark yet; run fray apply once")
	}
	return &Verifier{
		stack: stack, keys: keys, signed: map[string]Claims{},
		// It reads, and checks nothing: times are checked where now is known, signatures in
		// signedBy.
		parser: jwt.NewParser(jwt.WithStrictDecoding()),
	}, nil
}

// Verify returns the claims of a token, one of this package's errors, or that its key
// could not be looked up.
func (v *Verifier) Verify(ctx context.Context, token string, now time.Time) (Claims, error) {
	c, key, err := v.signedClaims(ctx, token)
	if err != nil {
		return Claims{}, err
	}
	if !c.Expires.IsZero() && !now.Before(c.Expires) {
		return Claims{}, fmt.Errorf("%w: it held until %s, and the clock here shows %s; make another, and check both clocks",
			ErrExpired, c.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if err := key.valid(now); err != nil {
		return Claims{}, err
	}
	return c, nil
}

// Signed is Verify but for the time: nil for tokens that have expired, too.
func (v *Verifier) Signed(ctx context.Context, token string) error {
	_, _, err := v.signedClaims(ctx, token)
	return err
}

func (v *Verifier) signedClaims(ctx context.Context, token string) (Claims, Key, error) {
	c, seen := v.seen(token)
	var read unverified
	if !seen {
		var err error
		if read, err = v.read(token); err != nil {
			return Claims{}, Key{}, err
		}
		c.Signer = read.signer
	}
	key, err := v.keys.Key(ctx, c.Signer) // which may have gone meanwhile
	switch {
	case errors.Is(err, ErrUnknownKey):
		return Claims{}, Key{}, fmt.Errorf("%w in the stack's store: run the command again, or restart the job; the stack may have got new keys", ErrUnknownKey)
	case err != nil:
		return Claims{}, Key{}, err
	}
	if key.ID != c.Signer || Sum(key.Public) != key.ID.Sum {
		return Claims{}, Key{}, fmt.Errorf("%w: another key is published as %s", ErrSignature, c.Signer)
	}
	if !seen {
		if c, err = v.signedBy(key, token, read); err != nil {
			return Claims{}, Key{}, err
		}
	}
	return c, key, key.may(c)
}

// seen are the claims of a token whose signature was checked before. The name of
// its key is a hash of that, so that it is the same key.
func (v *Verifier) seen(token string) (Claims, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c, ok := v.signed[token]
	return c, ok
}

// signedBy are the claims of a token that a key has signed.
func (v *Verifier) signedBy(key Key, token string, read unverified) (Claims, error) {
	if err := jwt.SigningMethodEdDSA.Verify(token[:strings.LastIndexByte(token, '.')], read.signature, key.Public); err != nil {
		return Claims{}, ErrSignature
	}
	c := read.claims.claims()
	c.Signer = key.ID
	if err := c.validate(); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.signed) >= maxSigned {
		clear(v.signed)
	}
	v.signed[token] = c
	return c, nil
}

// unverified is what a token says.
type unverified struct {
	signer    ID
	claims    wire
	signature []byte
}

// read is which key a token names, and what it says. Nothing of that is trusted before the
// signature was checked, but used for the message: a token of another stack is not looked up in
// this one.
func (v *Verifier) read(token string) (unverified, error) {
	var w wire
	parsed, _, err := v.parser.ParseUnverified(token, &w)
	if err != nil {
		return unverified{}, ErrMalformed
	}
	// No other algorithm is ever accepted, whatever a token's header asks for.
	switch parsed.Method.Alg() {
	case jwt.SigningMethodEdDSA.Alg():
	case jwt.SigningMethodHS256.Alg():
		return unverified{}, fmt.Errorf("%w, whose tokens are not accepted; restart the job that has it, or use a command of this version", ErrFormerSignature)
	default:
		return unverified{}, ErrSignature
	}
	if w.Stack != v.stack {
		return unverified{}, v.otherStack(w.Stack)
	}
	name, _ := parsed.Header["kid"].(string)
	id, err := ParseID(name)
	if err != nil {
		return unverified{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return unverified{signer: id, claims: w, signature: parsed.Signature}, nil
}

func (v *Verifier) otherStack(stack string) error {
	return fmt.Errorf("%w: it is for %.40q, and this is %s", ErrOtherStack, stack, v.stack)
}
