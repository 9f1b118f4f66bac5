package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"golang.org/x/sys/unix"
)

// Lease records who may act on the stack. It is renewed while its holder works
// and lapses by itself; it never has to be removed by hand. Each holder has a higher
// epoch than the one before.
//
// Its times are by the holder's clock. On another machine they are believed only
// as far as clocks may be apart: there it has lapsed when it was not renewed for
// as long as it is valid, by the observer's clock.
type Lease struct {
	Holder string `json:"holder"` // unique to one acquisition
	Epoch  uint64 `json:"epoch"`
	Host   string `json:"host"`
	BootID string `json:"boot_id,omitempty"`
	// PIDNamespace is what PID is a number of: containers of one host have others.
	PIDNamespace string    `json:"pid_namespace,omitempty"`
	User         string    `json:"user"`
	PID          int       `json:"pid"`
	Command      string    `json:"command"`
	AcquiredAt   time.Time `json:"acquired_at"`
	RenewedAt    time.Time `json:"renewed_at"`
	ExpiresAt    time.Time `json:"expires_at"`
	// ControllerAddress is where the cluster API is served, host:port, and
	// ControllerFingerprint the SHA-256 of its certificate, in hex; ControllerHTTP
	// is the web page's. They are "" for a holder that serves nothing.
	ControllerAddress     string `json:"controller_address,omitempty"`
	ControllerFingerprint string `json:"controller_fingerprint,omitempty"`
	ControllerHTTP        string `json:"controller_http,omitempty"`
	// SigningKey is the holder's public key (Ed25519): with it agents verify that
	// the controller calls. It is nil for a holder that makes no calls.
	SigningKey []byte `json:"signing_key,omitempty"`
	// RelayKey is the holder's public key (X25519) to which hosts seal what they say through
	// others. It is nil for a holder whose hosts all speak for themselves.
	RelayKey []byte `json:"relay_key,omitempty"`
	// Stack is the mark of the stack, for hosts that have no assignment yet.
	Stack    string `json:"stack,omitempty"`
	Released bool   `json:"released,omitempty"`
	// Nonce is unique to one write: it shows a writer whose reply was lost
	// whether the write happened.
	Nonce string `json:"nonce"`
	Yielding
	// Broken is the last lease of this stack that was ended by force: this one
	// if the epochs are the same, else one before it. nil: none ever was.
	Broken *BrokenLease `json:"broken,omitempty"`
}

// Yielding is how a lease is given to another process that asks for it.
type Yielding struct {
	// Yields marks a holder that gives way when asked, see RequestHandover.
	Yields bool `json:"yields,omitempty"`
	// Asked is the nonce of the last Handover that its holder was asked for. The process that asks writes it,
	// and leaves the rest of the lease as it is.
	Asked string `json:"asked,omitempty"`
}

// Live reports whether the lease binds others at a time.
func (l Lease) Live(now time.Time) bool { return !l.Released && now.Before(l.ExpiresAt) }

// Gone reports whether the holder's process is known to be gone: it ran on this
// machine since its last boot, where process ids mean the same as here, and none
// has its id. Nothing else proves it: not that it is out of sight, in another
// container, of another user or on another machine.
func (l Lease) Gone() bool {
	return sameBoot(l) && l.PID > 0 && l.PIDNamespace != "" && l.PIDNamespace == pidNamespace() &&
		(errors.Is(unix.Kill(l.PID, 0), unix.ESRCH) || isZombie(l.PID))
}

// isZombie reports whether a process has ended and its parent has not taken notice, as
// happens in containers whose first process is no init.
func isZombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // its name, in brackets, may have any characters
	end := bytes.LastIndexByte(data, ')')
	return err == nil && end >= 0 && bytes.HasPrefix(data[end+1:], []byte(" Z"))
}

// validity is how long the lease outlives a renewal.
func (l Lease) validity() time.Duration { return l.ExpiresAt.Sub(l.RenewedAt) }

// Who names the holder for people.
func (l Lease) Who() string {
	return fmt.Sprintf("%s@%s (pid %d, %s)", cmp.Or(l.User, "unknown"), cmp.Or(l.Host, "unknown"), l.PID, cmp.Or(l.Command, "fray"))
}

// taken names the present holder to its former one.
func (l Lease) taken() string {
	return fmt.Sprintf("%s has taken it over with epoch %d", l.Who(), l.Epoch)
}

// ErrLeaseLost is the cause with which a holder's context ends when the lease
// is no longer its own.
var ErrLeaseLost = errors.New("lease lost")

// HeldError reports that another process holds the lease. It is returned as a pointer.
type HeldError struct{ Lease Lease }

func (e *HeldError) Error() string {
	l := e.Lease
	return fmt.Sprintf("%s has been changing this stack since %s and holds its lease until %s, renewing it while it works; "+
		"wait until it is done, or end that process: its lease then lapses by itself",
		l.Who(), l.AcquiredAt.Local().Format(leaseTime), l.ExpiresAt.Local().Format(leaseTime))
}

// leaseTime is how times are shown to people.
const leaseTime = "2006-01-02 15:04:05 MST"

// LeaseConfig configures Acquire.
type LeaseConfig struct {
	TTL     time.Duration    // how long the lease outlives its last renewal; 0: 15s
	Command string           // what the holder is, for people: "fray apply"
	User    string           // who the holder acts for, for people; "": the user of this process
	Yields  bool             // a `fray watch` that gives way to an apply
	Now     func() time.Time // nil: time.Now
	// Wait is how long to wait for a live holder; 0: fail at once.
	Wait time.Duration
	// MinEpoch is an epoch that the new one must exceed even if the lease
	// knows nothing of it: the state's, so that removing the lease's object
	// does not let epochs fall.
	MinEpoch uint64
	// These go into the lease as they are.
	ControllerAddress     string
	ControllerFingerprint string
	ControllerHTTP        string
	SigningKey            []byte
	RelayKey              []byte
	Stack                 string
}

const defaultTTL = 15 * time.Second

func (c LeaseConfig) withDefaults() LeaseConfig {
	c.TTL = cmp.Or(c.TTL, defaultTTL)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c LeaseConfig) validate() error {
	if c.TTL < 0 || c.Wait < 0 {
		return fmt.Errorf("TTL %v and Wait %v must not be negative", c.TTL, c.Wait)
	}
	return nil
}

// Witness is what a Store may offer besides: a proof that a holder's process
// on this machine has ended, so that other processes need not wait for its lease to lapse.
type Witness interface {
	// Attest keeps up a holder's proof of life until end is called or this
	// process dies.
	Attest(holder string) (end func(), err error)
	// Ended reports whether a holder attested and its process is gone. It may
	// be asked on the holder's machine only.
	Ended(holder string) bool
	// Forget removes what is kept of an ended holder.
	Forget(holder string)
}

// witnessOf is nil for a store that has none.
func witnessOf(s Store) Witness {
	w, _ := behind[Witness](s)
	return w
}

// ReadLease returns the lease as it stands; ErrNotFound if there never was one.
func ReadLease(ctx context.Context, s Store) (Lease, error) {
	l, gen, err := readLease(ctx, s)
	if err == nil && gen == Absent {
		err = fmt.Errorf("read lease: %w", ErrNotFound)
	}
	return l, err
}

// readLease returns the zero lease and Absent if there is none.
func readLease(ctx context.Context, s Store) (Lease, Generation, error) {
	object, err := s.Get(ctx, LeaseKey)
	if errors.Is(err, ErrNotFound) {
		return Lease{}, Absent, nil
	}
	if err != nil {
		return Lease{}, 0, fmt.Errorf("read lease: %w", err)
	}
	var l Lease
	if err := Decode(object.Data, &l); err != nil {
		return Lease{}, 0, fmt.Errorf("read lease: %s in %s was left as it is (a holder that lives writes it anew within seconds; "+
			"if no other fray works on this stack, remove that object and try again): %w", LeaseKey, s.Location(), err)
	}
	return l, object.Generation, nil
}

// putLease writes a lease, with a nonce of its own by which it settles what an
// error leaves open: whether the write happened and only its reply was lost.
func putLease(ctx context.Context, s Store, l *Lease, want Generation) (Generation, error) {
	l.Nonce = newNonce()
	data, err := EncodeIndented(l)
	if err != nil {
		return 0, fmt.Errorf("encode lease: %w", err)
	}
	gen, err := s.Put(ctx, LeaseKey, data, want)
	if err == nil {
		return gen, nil
	}
	found, gen, readErr := readLease(ctx, s)
	if readErr == nil && found.Nonce == l.Nonce {
		return gen, nil
	}
	return 0, err
}

// newLease is a lease of this process, without times and epoch.
func newLease(cfg LeaseConfig) Lease {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Lease{
		Holder:            newNonce(),
		Host:              host,
		BootID:            bootID(),
		PIDNamespace:      pidNamespace(),
		User:              cmp.Or(cfg.User, userName()),
		PID:               os.Getpid(),
		Command:           cfg.Command,
		ControllerAddress: cfg.ControllerAddress, ControllerFingerprint: cfg.ControllerFingerprint, ControllerHTTP: cfg.ControllerHTTP,
		SigningKey: cfg.SigningKey, RelayKey: cfg.RelayKey, Stack: cfg.Stack,
		Yielding: Yielding{Yields: cfg.Yields},
	}
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), fmt.Sprintf("uid %d", os.Getuid()))
}

// newNonce is 128 random bits in hex.
func newNonce() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
