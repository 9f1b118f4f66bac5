package token_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fray-ml/fray/clusterapi/token"
)

// fixed derives the same key for every label.
type fixed []byte

func (f fixed) Derive(string) ([]byte, error) { return f, nil }

func keeper(t *testing.T, key, stack string) *token.Keeper {
	t.Helper()
	k, err := token.New(fixed(strings.Repeat(key, 32)), stack)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func mint(t *testing.T, k *token.Keeper, c token.Claims) string {
	t.Helper()
	text, err := k.Mint(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSaysWhatWasMinted(t *testing.T) {
	k := keeper(t, "k", "abc")
	tests := []token.Claims{
		{Stack: "abc", Subject: token.SubjectJob, Namespace: "rl", JobID: "train-x", Attempt: 3},
		{Stack: "abc", Subject: token.SubjectUser, User: "ann", Expires: noon.Add(token.UserLife)},
		{Stack: "abc", Subject: token.SubjectHost, Expires: noon.Add(time.Hour)},
		{Stack: "abc", Subject: token.SubjectController, Expires: noon.Add(time.Second)},
	}
	for _, want := range tests {
		t.Run(string(want.Subject), func(t *testing.T) {
			text := mint(t, k, want)
			got, err := k.Verify(text, noon)
			got.Expires = got.Expires.UTC()
			if want.Expires.IsZero() {
				got.Expires = time.Time{}
			}
			if err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			if again := mint(t, k, want); again != text {
				t.Errorf("minted again it is another token: %s and %s", text, again)
			}
		})
	}
}

func TestMintRefuses(t *testing.T) {
	tests := []struct {
		name   string
		claims token.Claims
		want   string
	}{
		{"no subject", token.Claims{}, "unknown subject"},
		{"a job without attempt", token.Claims{Subject: token.SubjectJob, Namespace: "rl", JobID: "x"}, "attempt"},
		{"a job without namespace", token.Claims{Subject: token.SubjectJob, Attempt: 1, JobID: "x"}, "namespace"},
		{"a user for ever", token.Claims{Subject: token.SubjectUser}, "needs an end"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text, err := keeper(t, "k", "abc").Mint(test.claims)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error with %q", text, err, test.want)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	k := keeper(t, "k", "abc")
	job := token.Claims{Subject: token.SubjectJob, Namespace: "rl", JobID: "x", Attempt: 1}
	user := token.Claims{Subject: token.SubjectUser, User: "ann", Expires: noon.Add(time.Minute)}
	signed := mint(t, k, job)
	foreign := job
	foreign.Stack = "xyz"
	raw := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		text, err := jwt.NewWithClaims(method, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	full := jwt.MapClaims{"stack": "abc", "sub": "job", "ns": "rl", "job": "x", "attempt": 1}
	key := []byte(strings.Repeat("k", 32))
	tests := []struct {
		name, token string
		now         time.Time
		want        error
	}{
		{"nothing", "", noon, token.ErrMalformed},
		{"words", "open sesame", noon, token.ErrMalformed},
		{"no JSON inside", "e30.e.e", noon, token.ErrMalformed},
		{"cut short", signed[:len(signed)-3], noon, token.ErrSignature},
		{"other claims under the signature", swapped(t, signed, `"attempt":1`, `"attempt":2`), noon, token.ErrSignature},
		{"another key", mint(t, keeper(t, "o", "abc"), job), noon, token.ErrSignature},
		{"another stack and key", mint(t, keeper(t, "o", "xyz"), job), noon, token.ErrOtherStack},
		{"another stack, the same key", mint(t, k, foreign), noon, token.ErrOtherStack},
		{"expired", mint(t, k, user), noon.Add(time.Minute), token.ErrExpired},
		{"algorithm none", raw(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, full), noon, token.ErrSignature},
		{"another algorithm", raw(jwt.SigningMethodHS512, key, full), noon, token.ErrSignature},
		{"a user without end", raw(jwt.SigningMethodHS256, key, jwt.MapClaims{"stack": "abc", "sub": "user"}), noon, token.ErrMalformed},
		{"a subject of the future", raw(jwt.SigningMethodHS256, key, jwt.MapClaims{"stack": "abc", "sub": "root", "exp": 9e9}), noon, token.ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := k.Verify(test.token, test.now)
			if !errors.Is(err, test.want) || got != (token.Claims{}) {
				t.Errorf("got %+v, %v\nwant nothing and %v", got, err, test.want)
			}
		})
	}
	if _, err := k.Verify(raw(jwt.SigningMethodHS256, key, full), noon); err != nil {
		t.Errorf("the same claims signed as they should be: %v", err)
	}
	if _, err := k.Verify(mint(t, k, user), noon.Add(59*time.Second)); err != nil {
		t.Errorf("a second before its end: %v", err)
	}
}

// swapped changes a token's claims and leaves its signature.
func swapped(t *testing.T, signed, old, replacement string) string {
	t.Helper()
	parts := strings.Split(signed, ".")
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !strings.Contains(string(claims), old) {
		t.Fatalf("claims %s, %v: want %s in them", claims, err, old)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(claims), old, replacement, 1)))
	return strings.Join(parts, ".")
}

func TestNewRefuses(t *testing.T) {
	if _, err := token.New(fixed("short"), "abc"); err == nil {
		t.Error("a key of 5 bytes was taken")
	}
	if _, err := token.New(fixed(strings.Repeat("k", 32)), ""); err == nil {
		t.Error("a stack without a mark was taken")
	}
}

func BenchmarkVerify(b *testing.B) {
	k, err := token.New(fixed(strings.Repeat("k", 32)), "abc")
	if err != nil {
		b.Fatal(err)
	}
	text, err := k.Mint(token.Claims{Subject: token.SubjectJob, Namespace: "rl", JobID: "x", Attempt: 1})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := k.Verify(text, noon); err != nil {
			b.Fatal(err)
		}
	}
}
