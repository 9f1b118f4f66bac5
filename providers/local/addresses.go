package local

import (
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

// addressTries is how many addresses are tried for one host.
const addressTries = 1000

// claimAddresses returns an address for every host of a slice, the same ones
// whenever it is asked unless another slice has them. The process that creates the file
// of an address has it, so that no lock guards them all: one that is suspended here
// keeps no other slice from its addresses. The caller has the slice's lock.
func (p *Provider) claimAddresses(spec schema.SliceSpec) ([]string, error) {
	addresses := make([]string, spec.Hosts)
	if !ownLoopback {
		for n := range addresses {
			addresses[n] = "127.0.0.1"
		}
		return addresses, nil
	}
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
		err := p.takeClaim(filepath.Join(p.claims(), address), claim)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("claim address: %w", err)
		}
		return address, nil
	}
	return "", failf(schema.ErrorCapacity, "no loopback address is free for host %d", n)
}

// takeClaim makes the file of a claim, or returns os.ErrExist where another slice
// has what the file is named after. A claim whose slice is gone, since its maker died, is removed first.
func (p *Provider) takeClaim(path, claim string) error {
	err := createFile(path, claim)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	owner, readErr := os.ReadFile(path)
	switch {
	case errors.Is(readErr, os.ErrNotExist): // released meanwhile
		return createFile(path, claim)
	case readErr != nil:
		return readErr
	case string(owner) == claim:
		return nil
	}
	name, _, _ := strings.Cut(string(owner), "/")
	if checkName(name) != nil {
		return err // its maker has yet to write its name, or died before
	}
	if _, statErr := os.Stat(p.slice(name).dir); !errors.Is(statErr, os.ErrNotExist) {
		return err
	}
	if err := p.sweep(name); err != nil {
		return err
	}
	return createFile(path, claim)
}

// createFile makes a file of which there is none yet.
func createFile(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // it would be in the way
	}
	return nil
}

// releaseClaims forgets all claims of a slice that was never recorded. The caller has
// the slice's lock.
func (p *Provider) releaseClaims(name string) error {
	return errors.Join(releaseFrom(p.claims(), name), releaseFrom(p.gpuClaims(), name))
}

// releaseFrom removes the claims of a slice in one directory.
func releaseFrom(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("release claims: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		claim, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(claim), name+"/") {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("release claim: %w", err))
		}
	}
	return errors.Join(errs...)
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
