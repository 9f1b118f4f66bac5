package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// mostGPUs bounds the indices that are tried.
const mostGPUs = 4096

func (p *Provider) gpuClaims() string { return filepath.Join(p.config.Root, "gpus") }

// claimGPUs returns the GPUs of this machine that are the own ones of a slice without a record,
// by index: the first that no other slice has. How many there are is plan's to know. The
// caller has the slice's lock.
func (p *Provider) claimGPUs(spec schema.SliceSpec) ([]int, error) {
	if spec.GPU.Count == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(p.gpuClaims(), 0o700); err != nil {
		return nil, fmt.Errorf("claim GPU: %w", err)
	}
	// Those of a maker that died are too many once a lower one is free: others would be given
	// GPUs that the machine does not have.
	if err := releaseFrom(p.gpuClaims(), spec.Name); err != nil {
		return nil, err
	}
	var own []int
	for n := 0; len(own) < spec.GPU.Count; n++ {
		if n == mostGPUs {
			return nil, failf(schema.ErrorCapacity, "no %d of %d GPUs are free", spec.GPU.Count, mostGPUs)
		}
		err := p.takeClaim(filepath.Join(p.gpuClaims(), strconv.Itoa(n)), spec.Name+"/gpu")
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("claim GPU: %w", err)
		}
		own = append(own, n)
	}
	return own, nil
}

// releaseGPUs forgets the claims of a slice that is gone.
func (p *Provider) releaseGPUs(r *record) error {
	if len(r.GPUs) == 0 {
		return nil
	}
	return releaseFrom(p.gpuClaims(), r.Spec.Name)
}

func joined(numbers []int) string {
	texts := make([]string, 0, len(numbers))
	for _, n := range slices.Sorted(slices.Values(numbers)) {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}
