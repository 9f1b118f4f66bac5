package across

import (
	"encoding/base64"
	"testing"
)

// Arguments and results that are too large for a frame pass between the languages, in parts.
func TestLargePayloads(t *testing.T) {
	const size = 9 << 20
	want := base64.StdEncoding.EncodedLen(size) + len(`{"$bytes":""}`)
	for _, served := range languages() {
		s := startServing(t, served, orders{Max: 64 << 20})
		for _, calling := range languages() {
			c := newCaller(t, calling)
			got := c.do(t, order{Do: "call", Address: s.address, Method: "echo", Size: size, Max: 64 << 20})
			if got.Error != nil || len(got.Value) < want || len(got.Value) > want+2 {
				t.Errorf("from %s to %s: got %d characters, %+v; want %d", calling, served, len(got.Value), got.Error, want)
			}
		}
	}
}
