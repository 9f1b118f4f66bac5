package state_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func newKey(t *testing.T, fill byte) *state.Key {
	t.Helper()
	key, err := state.NewKey(bytes.Repeat([]byte{fill}, state.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKeySealsAndOpens(t *testing.T) {
	key, other := newKey(t, 1), newKey(t, 2)
	seen := map[string]string{}
	for _, secret := range []string{"", "hunter2", "hunter3", "\x00\xff", strings.Repeat("long", 10_000)} {
		sealed, err := key.Seal(secret)
		if err != nil {
			t.Fatal(err)
		}
		if secret != "" && strings.Contains(sealed, secret) || !strings.HasPrefix(sealed, "v1:") {
			t.Errorf("%.20q is sealed as %.40q", secret, sealed)
		}
		if again, err := key.Seal(secret); err != nil || again != sealed {
			t.Errorf("%.20q is sealed as %.40q and as %.40q, %v", secret, sealed, again, err)
		}
		if before, ok := seen[sealed]; ok {
			t.Errorf("%.20q and %.20q are sealed alike", before, secret)
		}
		seen[sealed] = secret
		if opened, err := key.Open(sealed); err != nil || opened != secret {
			t.Errorf("opened %.20q, %v, want %.20q", opened, err, secret)
		}
		if opened, err := other.Open(sealed); err == nil {
			t.Errorf("another key opened %.20q as %.20q", secret, opened)
		}
		if otherSealed, err := other.Seal(secret); err != nil || otherSealed == sealed {
			t.Errorf("another key sealed %.20q alike, %v", secret, err)
		}
	}
}

// The format is for ever: what was sealed once must open.
func TestKeyOpensWhatWasSealedBefore(t *testing.T) {
	const sealed = "v1:Ln3SsAKULsjOesnAbEC5gtOfr3c//jOi5BPOrYsNyHQElTU="
	if opened, err := newKey(t, 7).Open(sealed); err != nil || opened != "hunter2" {
		t.Errorf("got %q, %v, want hunter2", opened, err)
	}
}

func TestKeyRefusesWhatItDidNotSeal(t *testing.T) {
	key := newKey(t, 1)
	sealed, err := key.Seal("hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for i := len("v1:"); i < len(sealed)-1; i++ { // the last digit has unused bits
		changed := []byte(sealed)
		changed[i] = 'A' + (changed[i]-'A'+1)%26
		if opened, err := key.Open(string(changed)); err == nil && string(changed) != sealed {
			t.Fatalf("with byte %d changed: got %q", i, opened)
		}
	}
	for _, bad := range []string{"", "v1:", "v1:AAAA", "v1:!", "v2:" + sealed[3:], sealed[3:], sealed[:len(sealed)-4], sealed + "AAAA"} {
		if opened, err := key.Open(bad); err == nil {
			t.Errorf("%q: got %q", bad, opened)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error tells the secret: %v", bad, err)
		}
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	key := newKey(t, 'K')
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, key); got != "(stack's key)" {
			t.Errorf("%s: got %s", format, got)
		}
	}
}

func TestKeyNeedsItsSize(t *testing.T) {
	for _, n := range []int{0, 16, state.KeySize - 1, state.KeySize + 1} {
		if _, err := state.NewKey(make([]byte, n)); err == nil {
			t.Errorf("%d bytes were taken", n)
		}
	}
}

func TestSealedTextsCompare(t *testing.T) {
	key := newKey(t, 1)
	seal := func(secret string) schema.Text {
		text, err := schema.Secret(secret).Seal(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if one, again := seal("a"), seal("a"); one != again || one == seal("b") {
		t.Error("sealed texts do not compare as their secrets do")
	}
	if revealed, err := seal("a").Reveal(key); err != nil || revealed != "a" {
		t.Errorf("revealed %q, %v", revealed, err)
	}
}
