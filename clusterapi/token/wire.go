package token

import (
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// wire is how claims are written.
type wire struct {
	Stack     string  `json:"stack"`
	Subject   Subject `json:"sub"`
	Namespace string  `json:"ns,omitempty"`
	Job       string  `json:"job,omitempty"`
	Attempt   int     `json:"attempt,omitempty"`
	User      string  `json:"user,omitempty"`
	Key       string  `json:"key,omitempty"`
	Expires   int64   `json:"exp,omitempty"` // seconds since 1970
}

var _ jwt.Claims = wire{}

func (w wire) claims() Claims {
	c := Claims{Stack: w.Stack, Subject: w.Subject, Namespace: w.Namespace, JobID: w.Job, Attempt: w.Attempt, User: w.User, Key: w.Key}
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
