package local_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/providertest"
	"github.com/fray-ml/fray/schema"
)

func TestConformance(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		p := newPlace(t)
		return providertest.Harness{
			Provider: p.provider(),
			Reopen:   func() providers.Provider { return p.provider() },
			Spec:     spec("", 2),
			Reported: func(_ context.Context, slice string) int {
				n := 0
				for host := range 2 {
					h, ok := p.report(slice, host)
					if ok && alive(h.PID) {
						n++
					}
				}
				return n
			},
			Left: func(slice string) []string {
				left, err := filepath.Glob(filepath.Join(p.root, "*", slice+"*"))
				if err != nil {
					t.Fatal(err)
				}
				for host := range 2 {
					if h, ok := p.report(slice, host); ok && alive(h.PID) {
						left = append(left, "a living agent")
					}
				}
				return left
			},
			KillHost: func(slice string, host int) {
				p.kill(p.lockHolder(slice, host, "agent.lock"))
			},
			CrashCreate: func(spec schema.SliceSpec) {
				if err := os.MkdirAll(p.hostDir(spec.Name, 0), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			Damage: func(slice string) {
				dir := filepath.Join(p.root, "slices", slice)
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "slice.json"), []byte(`{"spec":`), 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
