package savedplan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// basis is how something stood when a plan was made, for saying what moved.
type basis struct {
	Digest  schema.Digest    `json:"digest"`
	Status  schema.JobStatus `json:"status,omitempty"`
	Attempt int              `json:"attempt,omitempty"`
}

func basesOf(doc *state.Document) map[schema.Address]basis {
	all := map[schema.Address]basis{}
	for addr, r := range doc.Resources {
		all[addr] = basis{Digest: r.Digest}
	}
	for addr, j := range doc.Jobs {
		all[addr] = basis{Digest: j.Digest, Status: j.Status, Attempt: j.Attempt}
	}
	return all
}

// errStale reports that what a plan was made from is not as it was.
var errStale = errors.New("is stale")

// Check rejects a plan that was made for another state than doc, and reports what
// moved since.
func (sp *Plan) Check(path string, doc *state.Document, s store.Store) error {
	if sp.Serial == doc.Serial && (sp.Lineage == doc.Lineage || doc.Serial == 0) {
		return nil
	}
	again := sp.again(path)
	if sp.Serial > 0 && sp.Lineage != doc.Lineage {
		return fmt.Errorf("%s %w: it was made for the state of lineage %s, and %s holds another one (lineage %s)%s",
			path, errStale, sp.Lineage, s.Location(), doc.Lineage, again)
	}
	return fmt.Errorf("%s %w: it was made for the state in %s at serial %d, which is now at %d (%s)%s",
		path, errStale, s.Location(), sp.Serial, doc.Serial, sp.moved(doc), again)
}

// CheckPolicies rejects a plan if a policy that held for it has changed or is gone. Others
// may hold besides.
func (sp *Plan) CheckPolicies(path string, now *policies.Policies) error {
	missing := now.Missing(sp.Policies)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s is stale: policies that held for it have changed or are gone (%s)%s", path, strings.Join(missing, ", "), sp.again(path))
}

// PolicyDir is the directory beside whose files the policies of a plan stand.
func (sp *Plan) PolicyDir(l *configuration.Loaded) string {
	if sp.Mode != plan.ModeApply {
		return sp.Dir
	}
	return l.Source.Dir()
}

// maxMoved is how many differences a message names.
const maxMoved = 4

// IsStale reports whether an error is that of a plan which was made from something else than what is
// there now.
func IsStale(err error) bool { return errors.Is(err, errStale) }

// Blame adds to the error of a stale plan who changed the stack last, which the lease
// records also after it has ended. Other errors stay as they are.
func Blame(err error, last store.Lease) error {
	if !errors.Is(err, errStale) || last.Holder == "" {
		return err
	}
	return fmt.Errorf("%w; the last to change this stack was %s, since %s", err, last.Who(), last.AcquiredAt.UTC().Format("2006-01-02 15:04 MST"))
}

// moved reports what is otherwise than when the plan was made.
func (sp *Plan) moved(doc *state.Document) string {
	now := basesOf(doc)
	var found []string
	both := maps.Clone(now)
	maps.Copy(both, sp.Base)
	for _, addr := range slices.SortedFunc(maps.Keys(both), schema.Address.Compare) {
		before, was := sp.Base[addr]
		after, is := now[addr]
		switch {
		case !was:
			found = append(found, fmt.Sprintf("%s was created", addr))
		case !is:
			found = append(found, fmt.Sprintf("%s was removed", addr))
		case before.Digest != after.Digest:
			found = append(found, fmt.Sprintf("%s was changed", addr))
		case before.Status != after.Status:
			found = append(found, fmt.Sprintf("%s went from %s to %s", addr, before.Status, after.Status))
		case before.Attempt != after.Attempt:
			found = append(found, fmt.Sprintf("%s began attempt %d", addr, after.Attempt))
		}
	}
	if n := len(found) - maxMoved; n > 0 {
		found = append(found[:maxMoved], fmt.Sprintf("and %d more", n))
	}
	switch {
	case len(found) > 0:
		return strings.Join(found, ", ")
	case doc.Revision != sp.Revision:
		return "another apply was accepted that changed no job"
	}
	return "only what is recorded about slices and attempts changed"
}

func fileDigests(src *lang.Source) map[string]string {
	all := map[string]string{}
	for path, file := range src.Files() {
		sum := sha256.Sum256(file.Bytes)
		all[filepath.Base(path)] = hex.EncodeToString(sum[:])
	}
	return all
}

func movedFiles(before, after map[string]string) string {
	var found []string
	both := maps.Clone(after)
	maps.Copy(both, before)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		was, did := before[name]
		is, does := after[name]
		switch {
		case !did:
			found = append(found, name+" is new")
		case !does:
			found = append(found, name+" is gone")
		case was != is:
			found = append(found, name+" was edited")
		}
	}
	if len(found) == 0 {
		return "a file of variables was edited"
	}
	return strings.Join(found, ", ")
}
