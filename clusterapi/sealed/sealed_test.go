package sealed

import (
	"bytes"
	"errors"
	"testing"
)

// ends are both ends of a channel of host 3 of slice a.
func ends(t testing.TB) (host, controller *Channel, key *LeaderKey, offer Offer) {
	t.Helper()
	key, err := NewLeaderKey()
	if err != nil {
		t.Fatal(err)
	}
	host, offer, err = Dial(key.Public(), "a", 3)
	if err != nil {
		t.Fatal(err)
	}
	controller, err = key.Accept(offer, "a", 3)
	if err != nil {
		t.Fatal(err)
	}
	return host, controller, key, offer
}

func seal(t testing.TB, c *Channel, text string) []byte {
	t.Helper()
	m, err := c.Seal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wantOpen(t testing.TB, c *Channel, message []byte, want string) {
	t.Helper()
	if got, err := c.Open(message); err != nil || string(got) != want {
		t.Errorf("opened %q, %v; want %q", got, err, want)
	}
}

func wantForged(t testing.TB, c *Channel, message []byte, what string) {
	t.Helper()
	if got, err := c.Open(message); !errors.Is(err, errForged) {
		t.Errorf("%s: opened %q, %v; want it left out", what, got, err)
	}
}

// Messages go both ways and may be lost; what comes twice, late or changed, or back to where
// it came from, is left out.
func TestChannel(t *testing.T) {
	host, controller, _, _ := ends(t)
	first, second, third := seal(t, host, "first"), seal(t, host, ""), seal(t, host, "third")
	wantOpen(t, controller, first, "first")
	wantForged(t, controller, first, "a message that comes twice")
	wantOpen(t, controller, third, "third")
	wantForged(t, controller, second, "a message that comes late")
	fourth := seal(t, host, "fourth")
	if bytes.Contains(fourth, []byte("fourth")) {
		t.Error("a sealed message can be read")
	}
	for i := range fourth {
		changed := bytes.Clone(fourth)
		changed[i] ^= 1
		wantForged(t, controller, changed, "a message that was changed")
	}
	wantForged(t, controller, fourth[:4], "a piece")
	wantForged(t, host, fourth, "a message that goes back")
	wantOpen(t, controller, fourth, "fourth") // none of these did any harm
	wantOpen(t, host, seal(t, controller, "answer"), "answer")
}

// A channel is that of one host and one term.
func TestChannelOfAnother(t *testing.T) {
	host, _, key, offer := ends(t)
	message := seal(t, host, "report")
	next, err := NewLeaderKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []struct {
		what  string
		key   *LeaderKey
		slice string
		host  int
	}{{"another term", next, "a", 3}, {"another slice", key, "b", 3}, {"another host", key, "a", 2}} {
		c, err := other.key.Accept(offer, other.slice, other.host)
		if err != nil {
			t.Fatal(err)
		}
		wantForged(t, c, message, other.what)
	}
	if _, err := key.Accept(offer[1:], "a", 3); err == nil {
		t.Error("a piece of an offer is taken up")
	}
	if _, _, err := Dial([]byte("no key"), "a", 3); err == nil {
		t.Error("a channel to no key")
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	host, controller, _, _ := ends(b)
	b.ReportAllocs()
	for b.Loop() {
		m, err := host.Seal(make([]byte, 16))
		if err == nil {
			_, err = controller.Open(m)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAccept(b *testing.B) {
	_, _, key, offer := ends(b)
	for b.Loop() {
		if _, err := key.Accept(offer, "a", 3); err != nil {
			b.Fatal(err)
		}
	}
}
