package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/bench/rlroles"
	"github.com/fray-ml/fray/bench/scale"
)

// oneArg makes this program take a single measurement in this process, whose
// memory is then its own.
const oneArg = "one"

// result is what a measurement found out about itself, written as JSON.
type result struct {
	World  time.Duration   `json:",omitzero"` // in simulated calls
	Took   time.Duration   `json:",omitzero"`
	Steps  int             `json:",omitzero"`
	Saves  int             `json:",omitzero"` // of the state
	Apart  time.Duration   `json:",omitzero"` // the least between two saves
	Load   time.Duration   `json:",omitzero"`
	Save   time.Duration   `json:",omitzero"`
	Bytes  int             `json:",omitzero"` // of the state
	Idle   requests        `json:",omitzero"`
	Change requests        `json:",omitzero"`
	Roles  *rlroles.Result `json:",omitempty"`
	// Of a cloud.
	CPU     time.Duration `json:",omitzero"` // of a step with nothing to do
	Calls   int           `json:",omitzero"` // for one observation
	Pages   int           `json:",omitzero"` // that the observation had at least
	Again   time.Duration `json:",omitzero"` // until all was asked for again
	Longest time.Duration `json:",omitzero"` // of the steps until then
}

// The measurements that are no verb.
const (
	oneApply  = "apply-simulated"
	oneState  = "state"
	oneIdle   = "idle"
	oneCloud  = "cloud"
	oneStep   = "step"
	oneSteady = "steady"
	oneServe  = "cloud-server"
	oneEcho   = "echo"
	oneRoles  = "rl"
	oneScale  = "scale-controller"
	oneBucket = "scale-bucket"
)

// runOne takes a measurement: a verb with directory and mailbox location, or
// another one with a number or with a number and a directory.
func runOne(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("this form is for the bench itself")
	}
	var r result
	var err error
	switch n, _ := strconv.Atoi(args[1]); args[0] {
	case oneApply:
		r, err = applySimulated(ctx, n)
	case oneState:
		r, err = stateOnDisk(ctx, n, args[2])
	case oneIdle:
		r, err = idleOverBucket(ctx, n)
	case oneCloud:
		r, err = measureCloud(ctx, n)
	case oneStep:
		r, err = stepOver(ctx, n)
	case oneSteady:
		r, err = steadyWatch(ctx, n)
	case oneEcho:
		return serveEcho(ctx, echoKind(args[1]), os.Stdin, out)
	case oneScale:
		return scale.Control(ctx, args[1], args[2], os.Stdin, out)
	case oneBucket:
		return scale.Bucket(os.Stdin, out)
	case oneRoles:
		r, err = measureRoles(ctx, rlroles.Measurement(args[1]), rlroles.Journal(args[2]))
	case oneServe:
		return serveCloud(ctx, os.Stdin, out)
	default:
		r, err = runVerb(ctx, verb(args[0]), args[1], mailboxLocation(args[2]))
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// measureRoles takes a measurement of the roles of an RL run.
func measureRoles(ctx context.Context, what rlroles.Measurement, kind rlroles.Journal) (result, error) {
	sizes, err := rlroles.SizesOf(os.Getenv)
	if err != nil {
		return result{}, err
	}
	r, err := rlroles.Measure(ctx, what, kind, sizes)
	return result{Roles: &r}, err
}

// roles measures the roles of an RL run, each time in a process of its own.
func (b *bench) roles() error {
	sizes, err := rlroles.SizesOf(os.Getenv)
	if err != nil {
		return err
	}
	rows, err := rlroles.Rows(sizes, func(what rlroles.Measurement, kind rlroles.Journal) (rlroles.Result, error) {
		c, r, err := b.one(oneRoles, string(what), string(kind))
		if err != nil {
			return rlroles.Result{}, err
		}
		r.Roles.Peak = c.peak
		return *r.Roles, nil
	})
	for _, row := range rows {
		b.row(row.What, row.Measured, row.Target, row.Beside)
	}
	return err
}

// one takes a measurement in a process of its own.
func (b *bench) one(args ...string) (cost, result, error) {
	var r result
	var out strings.Builder
	c, err := limited(b.ctx, b.opts.limit, func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST=") // the bench brings its own
		cmd.Stdout = &out
	}, append([]string{b.self, oneArg}, args...)...)
	if err != nil {
		return c, r, err
	}
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		return c, r, fmt.Errorf("read what %v measured: %w", args, err)
	}
	return c, r, nil
}
