package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/proposal"
)

// Options are the flags of apply and destroy.
type Options struct {
	proposal.ChangeOptions
	AutoApprove  bool
	Parallelism  int
	Timeout      time.Duration
	LeaseTimeout time.Duration
	Wait         string
}

// Validate returns what is wrong with the options, as flags.
func (f *Options) Validate() error {
	if f.Wait != WaitReady && f.Wait != WaitComplete {
		return fmt.Errorf("--wait=%s: want %q or %q", f.Wait, WaitReady, WaitComplete)
	}
	if f.Parallelism < 1 {
		return fmt.Errorf("--parallelism=%d: want at least 1", f.Parallelism)
	}
	if f.Timeout < 0 || f.LeaseTimeout < 0 {
		return errors.New("--timeout and --lease-timeout must not be negative")
	}
	return nil
}
