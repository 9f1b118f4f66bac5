package local

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// addressLock guards the claims; no slice can have this name.
const addressLock = "_addresses"

// addressTries is how many addresses are tried for one host.
const addressTries = 1000

// claimAddresses returns an address for every host of a slice, the same ones
// whenever it is asked unless another slice has them.
func (p *Provider) claimAddresses(ctx context.Context, spec schema.SliceSpec) ([]string, error) {
	addresses := make([]string, spec.Hosts)
	if !ownLoopback {
		for n := range addresses {
			addresses[n] = "127.0.0.1"
		}
		return addresses, nil
	}
	held, err := p.lock(ctx, addressLock)
	if err != nil {
		return nil, err
	}
	defer held.release()
	if err := os.MkdirAll(p.claims(), 0o700); err != nil {
		return nil, fmt.Errorf("claim address: %w", err)
	}
	for n := range addresses {
		address, err := p.claimAddress(spec.Name, n)
		if err != nil {
			return nil, err
		}
		addresses[n] = address
	}
	return addresses, nil
}

func (p *Provider) claims() string { return filepath.Join(p.config.Root, "addresses") }

func (p *Provider) claimAddress(name string, n int) (string, error) {
	claim := name + "/" + strconv.Itoa(n)
	for try := range addressTries {
		address := loopback(claim, try).String()
		path := filepath.Join(p.claims(), address)
		owner, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("claim address: %w", err)
		case string(owner) != claim && p.claimed(string(owner)):
			continue
		}
		if err := os.WriteFile(path, []byte(claim), 0o600); err != nil {
			return "", fmt.Errorf("claim address: %w", err)
		}
		return address, nil
	}
	return "", failf(schema.ErrorCapacity, "no loopback address is free for host %d", n)
}

// claimed reports whether the slice of a claim is still there.
func (p *Provider) claimed(claim string) bool {
	name, _, _ := strings.Cut(claim, "/")
	if checkName(name) != nil {
		return false // an empty or cut off file: its writer died
	}
	_, err := os.Stat(p.slice(name).dir)
	return err == nil
}

// releaseAddresses forgets the claims of a slice that is gone.
func (p *Provider) releaseAddresses(r *record) error {
	if !ownLoopback {
		return nil
	}
	var errs []error
	for n, address := range r.Addresses {
		path := filepath.Join(p.claims(), address)
		owner, err := os.ReadFile(path)
		if err == nil && string(owner) == r.Spec.Name+"/"+strconv.Itoa(n) {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("release address: %w", err))
		}
	}
	return errors.Join(errs...)
}

// loopback is the try-th address for a claim, anywhere in 127.1.0.0 to
// 127.255.255.255: 127.0.0.0/16 is where people's own services are.
func loopback(claim string, try int) netip.Addr {
	sum := sha256.Sum256([]byte(claim + "#" + strconv.Itoa(try)))
	n := binary.BigEndian.Uint32(sum[:4])
	return netip.AddrFrom4([4]byte{127, byte(1 + (n>>16)%255), byte(n >> 8), byte(1 + n%254)})
}
