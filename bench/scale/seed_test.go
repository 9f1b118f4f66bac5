package scale

import (
	"net/http"
	"testing"
	"time"
)

func TestSeedX(t *testing.T) {
	b, _ := newService()
	s, err := open(t.Context(), "http://x", &http.Client{Transport: b}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := newFleet(s, b.put)
	if err := seed(t.Context(), f, 600); err != nil {
		t.Fatal(err)
	}
}
