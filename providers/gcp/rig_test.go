package gcp_test

import (
	"io"
	"testing"

	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
)

// emulated starts an emulator that ends with the test.
func emulated(t *testing.T, config emulator.Config) *emulator.Emulator {
	t.Helper()
	e := emulator.New(config)
	if err := e.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ends(t, e)
	return e
}

// opened is a provider that ends with the test.
func opened(t *testing.T, config gcp.Config) *gcp.Provider {
	t.Helper()
	p, err := gcp.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, p)
	return p
}

// ends closes something at the end of a test.
func ends(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
