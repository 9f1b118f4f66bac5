package ray

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers/ray/driver"
	"github.com/fray-ml/fray/schema"
)

// Keys of a job's metadata. Every user of the cluster may read them, so none is secret.
const (
	keyStack    = "fray-stack"    // the stack's mark
	keySlice    = "fray-slice"    // the slice's name
	keyAttempt  = "fray-attempt"  // the number of the submission
	keySpec     = "fray-spec"     // the SliceSpec in JSON
	keyDigest   = "fray-digest"   // SHA-256 of that
	keyLaunch   = "fray-launch"   // what the driver is to do
	keyWithdraw = "fray-withdraw" // "true": a submission that only ends those before it
)

func isName(text string) bool {
	return text != "" && len(text) <= 63 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// checkSpec rejects what cannot be a slice on Ray.
func checkSpec(spec schema.SliceSpec) error {
	switch {
	case !isName(spec.Name):
		return failf(schema.ErrorInvalid, "%q is no slice's name: want 1 to 63 of a-z, 0-9 and -", spec.Name)
	case spec.Stack == "":
		return failf(schema.ErrorInvalid, "a slice needs a stack's mark")
	case spec.Hosts < 1:
		return failf(schema.ErrorInvalid, "a slice needs at least one host, not %d", spec.Hosts)
	}
	return nil
}

// idOf is the submission id of the n-th submission of a slice. Ray's ids take no "/" and no
// space; the name has neither, and no "_".
func idOf(slice string, n int) string { return "fray_" + slice + "_" + strconv.Itoa(n) }

// attempt is one submission of a slice, as its job records it.
type attempt struct {
	job
	n        int
	withdraw bool // it only ends those before it
	spec     schema.SliceSpec
	bad      error // why the spec cannot be read
}

// slice is the name of the attempt's slice.
func (a *attempt) slice() string { return a.Metadata[keySlice] }

func (a *attempt) stack() string { return a.Metadata[keyStack] }

// readAttempt reads a job's metadata; false for a job that has no stack's mark, or that of another
// job: a copy of a job's metadata is no slice.
func readAttempt(j job) (*attempt, bool) {
	n, err := strconv.Atoi(j.Metadata[keyAttempt])
	if err != nil || j.Metadata[keyStack] == "" || j.SubmissionID != idOf(j.Metadata[keySlice], n) {
		return nil, false
	}
	a := &attempt{job: j, n: n, withdraw: j.Metadata[keyWithdraw] == "true"}
	if !a.withdraw {
		a.spec, a.bad = readSpec(j.Metadata)
	}
	return a, true
}

func readSpec(metadata map[string]string) (schema.SliceSpec, error) {
	var spec schema.SliceSpec
	text := metadata[keySpec]
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return spec, fmt.Errorf("its metadata %s cannot be read: %w", keySpec, err)
	}
	if spec.Name != metadata[keySlice] || spec.Stack != metadata[keyStack] || digestOf(text) != metadata[keyDigest] {
		return spec, fmt.Errorf("its metadata %s is not what %s, %s and %s state", keySpec, keySlice, keyStack, keyDigest)
	}
	return spec, nil
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// history is all submissions of one slice by number, the newest last; at least one.
type history []*attempt

func (h history) newest() *attempt { return h[len(h)-1] }

// live are the submissions of slices, not withdrawals, that have not ended.
func (h history) live() []*attempt {
	var live []*attempt
	for _, a := range h {
		if !a.withdraw && !a.Status.ended() {
			live = append(live, a)
		}
	}
	return live
}

// histories sorts jobs by slice.
func histories(jobs []job) map[string]history {
	all := map[string]history{}
	for _, j := range jobs {
		if a, ok := readAttempt(j); ok {
			all[a.slice()] = append(all[a.slice()], a)
		}
	}
	for _, h := range all {
		slices.SortFunc(h, func(a, b *attempt) int { return cmp.Compare(a.n, b.n) })
	}
	return all
}

// standing is how a slice stands by its submissions.
type standing uint8

const (
	standsGone  standing = iota // nothing of it is left, or is wanted
	standsLive                  // its newest submission has not ended
	standsGoing                 // it was withdrawn and has yet to end
	standsDead                  // its newest submission has failed
)

// stands judges by the submissions alone. One that was stopped is gone: deletions stop it, or
// people do.
func (h history) stands() standing {
	newest := h.newest()
	switch {
	case newest.withdraw && len(h.live()) > 0:
		return standsGoing
	case newest.withdraw || newest.Status == jobStopped:
		return standsGone
	case !newest.Status.ended():
		return standsLive
	}
	return standsDead
}

// subject is the attempt that the standing is about.
func (h history) subject() *attempt {
	if live := h.live(); h.newest().withdraw && len(live) > 0 {
		return live[len(live)-1]
	}
	return h.newest()
}

func (a *attempt) createdAt() time.Time { return time.UnixMilli(a.StartTime) }

// failure is why a slice is dead: its kind, and the reason for people.
func (a *attempt) failure() (schema.ErrorKind, string) {
	reason := driverReason(a.Message)
	if a.Status == jobSucceeded {
		return schema.ErrorUnavailable, "its driver ended by itself"
	}
	switch a.ErrorType {
	case errorStartTimeout, errorUnschedulable:
		return schema.ErrorCapacity, "Ray had no place for the driver of the slice: " + reason
	case errorSupervisorDied, errorSupervisor:
		return schema.ErrorPreempted, "the node of the slice's driver died: " + reason
	case errorRuntimeEnv:
		return schema.ErrorUnavailable, "Ray could not unpack fray's program: " + reason
	case errorEntrypoint:
		return a.entrypointFailure(reason)
	case errorStartFailure, errorEntrypointGone:
		return schema.ErrorUnavailable, reason
	}
	return schema.ErrorUnavailable, reason
}

func (a *attempt) entrypointFailure(reason string) (schema.ErrorKind, string) {
	code := 0
	if a.ExitCode != nil {
		code = *a.ExitCode
	}
	switch {
	case code == driver.ExitLost, code == driver.ExitWithdrawn:
		return schema.ErrorPreempted, reason
	case code == driver.ExitHostFailed, code == driver.ExitNoFence:
		return schema.ErrorUnavailable, reason
	case code < 0, code == 137, code == 143: // Ray's form of an end by a signal, and a shell's
		return schema.ErrorPreempted, fmt.Sprintf("its driver was killed (status %d)", code)
	}
	return schema.ErrorUnavailable, fmt.Sprintf("its driver failed with status %d: %s", code, reason)
}

// driverMark begins the lines that the driver writes for people.
const driverMark = "fray: "

// driverReason is the last line that the driver wrote for people, or the last one at all.
func driverReason(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	for _, line := range slices.Backward(lines) {
		if text, is := strings.CutPrefix(line, driverMark); is {
			return strings.TrimSpace(text)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// unreadable is a job with the stack's mark that is left out of an inventory.
func (a *attempt) unreadable() schema.SkippedItem {
	return schema.SkippedItem{
		Name: a.slice(), Reason: schema.SkipUnreadable,
		Text: fmt.Sprintf("job %s carries the mark of stack %s, but %v; stop it with \"ray job stop %s\" if nothing needs it", a.SubmissionID, a.stack(), a.bad, a.SubmissionID),
	}
}

var errUnreadable = errors.New("what the slice's job records cannot be read")
