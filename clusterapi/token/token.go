// Package token makes and checks the bearer tokens of the cluster API: JSON Web
// Tokens signed with HMAC-SHA-256 under a key that is derived from the stack's
// own. Whoever can open the stack's key can make them; nobody else can.
//
// It says who a token speaks for. What they may do, and whether the attempt of
// a job's token still runs, is the controller's to know. The package has no
// clock: now is an argument.
//
// Start with [New].
package token

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Label names the key that is derived for tokens among others of the stack.
const Label = "cluster api tokens v1"

// KeySize is the least length of a key in bytes: that of the MAC.
const KeySize = 32

// UserLife is how long the token of a user holds. They are made for each
// command anew.
const UserLife = 10 * time.Minute

// Subject is the kind of bearer, a closed set.
type Subject string

// The subjects.
const (
	SubjectJob        Subject = "job"        // the tasks of one attempt of a job
	SubjectUser       Subject = "user"       // a person who can open the stack's key
	SubjectHost       Subject = "host"       // an agent
	SubjectController Subject = "controller" // `fray watch`, to agents
)

func (s Subject) valid() bool {
	switch s {
	case SubjectJob, SubjectUser, SubjectHost, SubjectController:
		return true
	}
	return false
}

// Claims are what a token says of its bearer.
type Claims struct {
	Stack   string // the mark of the stack that it belongs to
	Subject Subject
	// Namespace, JobID and Attempt of a job's token.
	Namespace string
	JobID     string
	Attempt   int
	// User is a user's name.
	User string
	// Expires is when it ceases to hold, to the second. It is zero for the
	// token of a job, which holds as long as its attempt runs.
	Expires time.Time
}

// validate says what the claims lack for their subject.
func (c Claims) validate() error {
	switch {
	case c.Stack == "":
		return errors.New("it names no stack")
	case !c.Subject.valid():
		return fmt.Errorf("unknown subject %q", c.Subject)
	case c.Subject == SubjectJob && (c.JobID == "" || c.Attempt < 1 || c.Namespace == ""):
		return errors.New("a job's token needs its namespace, job and attempt")
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
	ErrSignature  = errors.New("the token was not signed with this stack's key")
)

// Deriver derives keys from a secret that it keeps to itself.
type Deriver interface {
	Derive(label string) ([]byte, error)
}

// Keeper mints and verifies the tokens of one stack. It may be used concurrently.
type Keeper struct {
	key    []byte
	stack  string
	parser *jwt.Parser
}

// New returns the Keeper for the stack of a mark, from the stack's key.
func New(from Deriver, stack string) (*Keeper, error) {
	if stack == "" {
		return nil, errors.New("make the key of tokens: the stack has no mark yet; run fray apply once")
	}
	key, err := from.Derive(Label)
	if err != nil {
		return nil, fmt.Errorf("make the key of tokens: %w", err)
	}
	if len(key) < KeySize {
		return nil, fmt.Errorf("make the key of tokens: want at least %d bytes, got %d", KeySize, len(key))
	}
	return &Keeper{
		key: key, stack: stack,
		// Times are checked here, where now is known. No other algorithm is
		// ever accepted, whatever a token's header asks for.
		parser: jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation()),
	}, nil
}

// Mint returns a token that says c. The stack may be left out. The same claims
// give the same token.
func (k *Keeper) Mint(c Claims) (string, error) {
	if c.Stack == "" {
		c.Stack = k.stack
	}
	if err := c.validate(); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	w := wire{Stack: c.Stack, Subject: c.Subject, Namespace: c.Namespace, Job: c.JobID, Attempt: c.Attempt, User: c.User}
	if !c.Expires.IsZero() {
		w.Expires = c.Expires.Unix()
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, w).SignedString(k.key)
	if err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return signed, nil
}

// Verify returns what a token says, or one of this package's errors.
func (k *Keeper) Verify(token string, now time.Time) (Claims, error) {
	var w wire
	_, err := k.parser.ParseWithClaims(token, &w, func(*jwt.Token) (any, error) { return k.key, nil })
	if err != nil {
		return Claims{}, k.explain(err, w)
	}
	c := w.claims()
	switch {
	case c.Stack != k.stack:
		return Claims{}, fmt.Errorf("%w: it is for %.40q, and this is %s", ErrOtherStack, c.Stack, k.stack)
	case c.validate() != nil:
		return Claims{}, fmt.Errorf("%w: %w", ErrMalformed, c.validate())
	case !c.Expires.IsZero() && !now.Before(c.Expires):
		return Claims{}, fmt.Errorf("%w: it held until %s, and the clock here says %s; make another, and check both clocks",
			ErrExpired, c.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return c, nil
}

// explain names what is wrong with a token that cannot be trusted; what it
// says is used for the message only.
func (k *Keeper) explain(err error, said wire) error {
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return ErrMalformed
	case said.Stack != "" && said.Stack != k.stack:
		return fmt.Errorf("%w: it is for %.40q, and this is %s", ErrOtherStack, said.Stack, k.stack)
	}
	return ErrSignature
}

// wire is how claims are written.
type wire struct {
	Stack     string  `json:"stack"`
	Subject   Subject `json:"sub"`
	Namespace string  `json:"ns,omitempty"`
	Job       string  `json:"job,omitempty"`
	Attempt   int     `json:"attempt,omitempty"`
	User      string  `json:"user,omitempty"`
	Expires   int64   `json:"exp,omitempty"` // seconds since 1970
}

var _ jwt.Claims = wire{}

func (w wire) claims() Claims {
	c := Claims{Stack: w.Stack, Subject: w.Subject, Namespace: w.Namespace, JobID: w.Job, Attempt: w.Attempt, User: w.User}
	if w.Expires != 0 {
		c.Expires = time.Unix(w.Expires, 0)
	}
	return c
}

// GetExpirationTime, like the methods below, is what the library asks of claims.
// It is not used: Verify checks what is there.
func (w wire) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuedAt returns nothing.
func (w wire) GetIssuedAt() (*jwt.NumericDate, error) { return nil, nil }

// GetNotBefore returns nothing.
func (w wire) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuer returns nothing.
func (w wire) GetIssuer() (string, error) { return "", nil }

// GetSubject returns the kind of bearer.
func (w wire) GetSubject() (string, error) { return string(w.Subject), nil }

// GetAudience returns nothing.
func (w wire) GetAudience() (jwt.ClaimStrings, error) { return nil, nil }
