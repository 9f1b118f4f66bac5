package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Target is what an import names.
type Target struct {
	Place
	Queued bool // it is named as a queued resource
}

// Found is what is there under a target.
type Found struct {
	mark.Marks
	Status      schema.SliceStatus // without a spec
	Live        schema.CloudLive   // as it is
	Metadata    map[string]string
	Differences []string // from what is declared, as texts
	// Mark gives it labels and metadata beside those that it has, and returns
	// when that is done.
	Mark func(ctx context.Context, labels, metadata map[string]string) error
}

// Fits rejects what is another's, is not alive, or is not what is declared.
func (f *Found) Fits(spec schema.SliceSpec) error {
	if owner := f.Labels[mark.StackLabel]; owner != "" && owner != spec.Stack {
		return apierror.Errorf(schema.ErrorConflict, "it carries the mark of another stack, %s: remove it from that stack's state, then take its labels %s and %s away", owner, mark.StackLabel, mark.SliceLabel)
	}
	if f.Status.Phase == schema.SliceDead || f.Status.Phase == schema.SliceDeleting {
		return apierror.Errorf(schema.ErrorConflict, "%s; only what lives can be imported", f.Status.Reason)
	}
	if f.Owned(spec.Stack) {
		was, err := f.Spec()
		if err != nil {
			return apierror.Errorf(schema.ErrorConflict, "it carries this stack's mark, but %w; take its label %s away to import it anew", err, mark.StackLabel)
		}
		f.Status.Spec = was
	}
	if len(f.Differences) > 0 {
		return apierror.Errorf(schema.ErrorConflict, "it is not what is declared: %s", strings.Join(f.Differences, "; "))
	}
	return nil
}

// Differs records a difference as a text, unless there is none.
func (f *Found) Differs(what, is, declared string) {
	if is != declared {
		f.Differences = append(f.Differences, fmt.Sprintf("its %s is %s, and %s is declared", what, orNone(is), orNone(declared)))
	}
}

// DiffersIfStated is differs for what is as it comes where nothing is declared.
// Of paths, the last parts count.
func (f *Found) DiffersIfStated(what, is, declared string) {
	if declared != "" {
		f.Differs(what, path.Base(is), path.Base(declared))
	}
}

func orNone(s string) string {
	if s == "" || s == "." {
		return "none"
	}
	return s
}

// LiveOf is what of the declared is so already; the rest is for an update.
func LiveOf(declared schema.CloudLive, labels map[string]string, tags []string, external bool) schema.CloudLive {
	has := map[string]string{}
	maps.Copy(has, declared.LabelMap())
	maps.DeleteFunc(has, func(key, value string) bool { return labels[key] != value })
	kept := slices.DeleteFunc(slices.Clone(declared.TagList()), func(tag string) bool { return !slices.Contains(tags, tag) })
	return schema.CloudLive{Labels: schema.JoinLabels(has), Tags: strings.Join(kept, ","), InternalIPs: !external}
}

// Settled waits until an operation is over. An import is asked for once, and not
// in every Step.
func Settled(ctx context.Context, r Reader, poll func() (bool, error)) error {
	const longest = 4 // doublings
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for try := 0; ; try++ {
		over, err := poll()
		if over || err != nil {
			return err
		}
		if err := r.Wait(ctx, min(try, longest)); err != nil {
			return err
		}
	}
}

// TierOf names whether a slice may be preempted.
func TierOf(preemptible bool) string {
	if preemptible {
		return "preemptible"
	}
	return "not preemptible"
}
