package token_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fray-ml/fray/clusterapi/token"
)

// store is where keys are published.
type store map[token.ID]token.Key

func (s store) Key(_ context.Context, id token.ID) (token.Key, error) {
	key, ok := s[id]
	if !ok {
		return key, token.ErrUnknownKey
	}
	return key, nil
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// private is a key that follows from a seed, so that failures can be repeated.
func private(seed string) ed25519.PrivateKey {
	sum := sha256.Sum256([]byte(seed))
	return ed25519.NewKeyFromSeed(sum[:])
}

func signer(t testing.TB, seed, stack string, at token.ID) *token.Signer {
	t.Helper()
	s, err := token.NewSigner(private(seed), stack, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// publish puts a signer's key where readers find it.
func (s store) publish(of *token.Signer) *token.Signer {
	key := token.Key{ID: of.ID(), Public: of.Public()}
	if of.ID().Role == token.RoleCommand {
		key.User, key.Expires = "ann", noon.Add(token.CommandLife)
	}
	s[of.ID()] = key
	return of
}

var (
	ofLeader  = token.ID{Role: token.RoleLeader}
	ofCommand = token.ID{Role: token.RoleCommand}
	ofHost    = token.ID{Role: token.RoleHost, Slice: "train-0-ab", Host: 3}
)

func verifier(t testing.TB, s store) *token.Verifier {
	t.Helper()
	v, err := token.NewVerifier("abc", s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mint(t testing.TB, s *token.Signer, c token.Claims) string {
	t.Helper()
	text, err := s.Mint(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The claims of each subject.
var (
	jobClaims        = token.Claims{Stack: "abc", Subject: token.SubjectJob, Namespace: "rl", JobID: "train-x", Attempt: 3, User: "bob"}
	userClaims       = token.Claims{Stack: "abc", Subject: token.SubjectUser, User: "ann", Expires: noon.Add(token.UserLife)}
	hostClaims       = token.Claims{Stack: "abc", Subject: token.SubjectHost, Expires: noon.Add(time.Hour)}
	relayedClaims    = token.Claims{Stack: "abc", Subject: token.SubjectRelayed, Expires: noon.Add(time.Minute), Key: "0a1b"}
	controllerClaims = token.Claims{Stack: "abc", Subject: token.SubjectController, Expires: noon.Add(time.Second)}
)

func TestSaysWhatWasMinted(t *testing.T) {
	tests := []struct {
		at   token.ID
		want token.Claims
	}{{ofHost, jobClaims}, {ofCommand, userClaims}, {ofHost, hostClaims}, {ofHost, relayedClaims}, {ofLeader, controllerClaims}}
	for _, test := range tests {
		t.Run(string(test.want.Subject), func(t *testing.T) {
			s := store{}
			from := s.publish(signer(t, "k", "abc", test.at))
			text := mint(t, from, test.want)
			v, want := verifier(t, s), test.want
			want.Signer = from.ID()
			for range 2 { // the second time without looking at the signature again
				got, err := v.Verify(t.Context(), text, noon)
				got.Expires = got.Expires.UTC()
				if want.Expires.IsZero() {
					got.Expires = time.Time{}
				}
				if err != nil || got != want {
					t.Errorf("got %+v, %v\nwant %+v", got, err, want)
				}
			}
			if again := mint(t, from, test.want); again != text {
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
		{"a relayed host without a key", token.Claims{Subject: token.SubjectRelayed, Expires: noon}, "needs a key"},
		{"a host with a key", token.Claims{Subject: token.SubjectHost, Expires: noon, Key: "0a1b"}, "no other has one"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text, err := signer(t, "k", "abc", ofCommand).Mint(test.claims)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error with %q", text, err, test.want)
			}
		})
	}
}

// forged is a token as no Signer makes it.
func forged(t *testing.T, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	t.Helper()
	made := jwt.NewWithClaims(method, claims)
	if kid != "" {
		made.Header["kid"] = kid
	}
	text, err := made.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVerifyRefuses: nothing that follows from what is published, and nothing that
// one signer signs for another, is accepted.
func TestVerifyRefuses(t *testing.T) {
	s := store{}
	leader, command, host := s.publish(signer(t, "l", "abc", ofLeader)), s.publish(signer(t, "c", "abc", ofCommand)), s.publish(signer(t, "h", "abc", ofHost))
	unpublished := signer(t, "mine", "abc", ofCommand)
	elsewhere := ofHost
	elsewhere.Slice = "other-0-cd"
	impostor := signer(t, "h", "abc", elsewhere) // that host's own key, as another host's
	stolenName := s.publish(signer(t, "victim", "abc", elsewhere))
	signed := mint(t, host, jobClaims)
	foreign, ben, longer := jobClaims, userClaims, userClaims
	foreign.Stack, ben.User, longer.Expires = "xyz", "ben", noon.Add(token.CommandLife+time.Second)
	full := jwt.MapClaims{"stack": "abc", "sub": "job", "ns": "rl", "job": "x", "attempt": 1}
	asUser := jwt.MapClaims{"stack": "abc", "sub": "user", "user": "ann", "exp": noon.Add(time.Minute).Unix()}
	hmac := []byte(strings.Repeat("k", 32))
	far := signer(t, "far", "abc", ofCommand)
	s[far.ID()] = token.Key{ID: far.ID(), Public: far.Public(), User: "ann", Expires: noon.Add(365 * 24 * time.Hour)}
	swappedKey := signer(t, "swapped", "abc", ofCommand)
	s[swappedKey.ID()] = token.Key{ID: swappedKey.ID(), Public: command.Public(), User: "ann", Expires: noon.Add(time.Minute)}
	tests := []struct {
		name, token string
		now         time.Time
		want        error
	}{
		{"nothing", "", noon, token.ErrMalformed},
		{"words", "open sesame", noon, token.ErrMalformed},
		{"no JSON inside", "e30.e.e", noon, token.ErrMalformed},
		{"cut short", signed[:len(signed)-3], noon, token.ErrMalformed},
		{"other claims under the signature", swapped(t, signed, `"attempt":3`, `"attempt":2`), noon, token.ErrSignature},
		{"a key that is not published", mint(t, unpublished, userClaims), noon, token.ErrUnknownKey},
		{"another stack and key", mint(t, signer(t, "o", "xyz", ofHost), foreign), noon, token.ErrOtherStack},
		{"another stack, the same key", mint(t, host, foreign), noon, token.ErrOtherStack},
		{"expired", mint(t, command, userClaims), noon.Add(token.UserLife), token.ErrExpired},
		{"algorithm none", forged(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, command.ID().String(), asUser), noon, token.ErrSignature},
		{"the stack's key, as formerly", forged(t, jwt.SigningMethodHS256, hmac, "", full), noon, token.ErrFormerSignature},
		{"a MAC under the public key", forged(t, jwt.SigningMethodHS256, []byte(command.Public()), command.ID().String(), asUser), noon, token.ErrFormerSignature},
		{"a longer MAC under the public key", forged(t, jwt.SigningMethodHS512, []byte(command.Public()), command.ID().String(), asUser), noon, token.ErrSignature},
		{"its own key under a published name", forged(t, jwt.SigningMethodEdDSA, private("mine"), command.ID().String(), asUser), noon, token.ErrSignature},
		{"another key under the published name", mint(t, swappedKey, userClaims), noon, token.ErrSignature},
		{"no key named", forged(t, jwt.SigningMethodEdDSA, private("c"), "", asUser), noon, token.ErrMalformed},
		{"a path for a key", forged(t, jwt.SigningMethodEdDSA, private("c"), "host.../state.json.0."+command.ID().Sum, asUser), noon, token.ErrMalformed},
		{"a command's key for the controller", mint(t, command, controllerClaims), noon, token.ErrRole},
		{"a command's key for a host", mint(t, command, hostClaims), noon, token.ErrRole},
		{"a command's key for a job", mint(t, command, jobClaims), noon, token.ErrRole},
		{"a command's key for another user", mint(t, command, ben), noon, token.ErrRole},
		{"a command's key for longer than it lives", mint(t, command, longer), noon, token.ErrRole},
		{"a command's key that lives for a year", mint(t, far, userClaims), noon, token.ErrRole},
		{"a host's key for a user", mint(t, host, userClaims), noon, token.ErrRole},
		{"a host's key for the controller", mint(t, host, controllerClaims), noon, token.ErrRole},
		{"a host's key as another host's", mint(t, impostor, jobClaims), noon, token.ErrUnknownKey},
		{"a host's key under another host's name", forged(t, jwt.SigningMethodEdDSA, private("h"), stolenName.ID().String(), full), noon, token.ErrSignature},
		{"the leader's key for a user", mint(t, leader, userClaims), noon, token.ErrRole},
		{"the leader's key for a job", mint(t, leader, jobClaims), noon, token.ErrRole},
		{"a user without end", forged(t, jwt.SigningMethodEdDSA, private("c"), command.ID().String(), jwt.MapClaims{"stack": "abc", "sub": "user"}), noon, token.ErrMalformed},
		{"a subject of the future", forged(t, jwt.SigningMethodEdDSA, private("c"), command.ID().String(), jwt.MapClaims{"stack": "abc", "sub": "root", "exp": 9e9}), noon, token.ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := verifier(t, s).Verify(t.Context(), test.token, test.now)
			if !errors.Is(err, test.want) || got != (token.Claims{}) {
				t.Errorf("got %+v, %v\nwant nothing and %v", got, err, test.want)
			}
			if !token.Rejected(err) {
				t.Errorf("%v passes for a key that could not be looked up", err)
			}
		})
	}
	v := verifier(t, s)
	if _, err := v.Verify(t.Context(), forged(t, jwt.SigningMethodEdDSA, private("c"), command.ID().String(), asUser), noon); err != nil {
		t.Errorf("the same claims signed as they should be: %v", err)
	}
	user := mint(t, command, userClaims)
	if _, err := v.Verify(t.Context(), user, noon.Add(token.UserLife-time.Second)); err != nil {
		t.Errorf("a second before its end: %v", err)
	}
	// What was verified before holds only as long as its key is published.
	delete(s, command.ID())
	if _, err := v.Verify(t.Context(), user, noon); !errors.Is(err, token.ErrUnknownKey) {
		t.Errorf("replayed after its key was removed: %v, want %v", err, token.ErrUnknownKey)
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
	if _, err := token.NewSigner(private("k"), "", ofLeader); err == nil {
		t.Error("a stack without a mark was taken by NewSigner")
	}
	if _, err := token.NewVerifier("", store{}); err == nil {
		t.Error("a stack without a mark was taken by NewVerifier")
	}
	if _, err := token.NewSigner(private("k"), "abc", token.ID{Role: token.RoleHost, Slice: "../x"}); err == nil {
		t.Error("a slice that is no name was taken")
	}
}

func TestIDs(t *testing.T) {
	sum := strings.Repeat("ab", 16)
	for _, good := range []string{"leader." + sum, "command." + sum, "host.train-0.12." + sum} {
		if id, err := token.ParseID(good); err != nil || id.String() != good {
			t.Errorf("%s is read as %+v, %v", good, id, err)
		}
	}
	for _, bad := range []string{"", ".", sum, "root." + sum, "leader", "leader." + sum[1:], "leader." + strings.ToUpper(sum), "leader.x." + sum,
		"host." + sum, "host.train." + sum, "host.train.-1." + sum, "host.train.01." + sum, "host.tr/ain.1." + sum, "host..1." + sum} {
		if id, err := token.ParseID(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, id)
		}
	}
}

// BenchmarkVerify is of a token that comes again and again, as a task's does;
// BenchmarkVerifyFirst of one that was not seen before.
func BenchmarkVerify(b *testing.B) {
	s := store{}
	text := mint(b, s.publish(signer(b, "k", "abc", ofHost)), jobClaims)
	v := verifier(b, s)
	for b.Loop() {
		if _, err := v.Verify(b.Context(), text, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyFirst(b *testing.B) {
	s := store{}
	text := mint(b, s.publish(signer(b, "k", "abc", ofHost)), jobClaims)
	for b.Loop() {
		if _, err := verifier(b, s).Verify(b.Context(), text, noon); err != nil {
			b.Fatal(err)
		}
	}
}
