package gcp

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

var _ providers.Importer = (*Provider)(nil)

// What fray did not make is taken over in place: it gets the labels and the
// metadata that a slice of fray's has, and keeps its name. Its machines do not
// know of it until they run their startup script; see [StartCommand].

// replacedScript keeps the startup script that a machine had before.
const replacedScript = "fray-replaced-startup-script"

// target is what an import names.
type target struct {
	place
	queued bool // it is named as a queued resource
}

// found is what is there under a target.
type found struct {
	marks
	status      schema.SliceStatus // without a spec
	live        schema.CloudLive   // as it is
	metadata    map[string]string
	differences []string // from what is declared, in words
	// mark gives it labels and metadata beside those that it has, and returns
	// when that is done.
	mark func(ctx context.Context, labels, metadata map[string]string) error
}

// Find is Importer.Find.
func (p *Provider) Find(ctx context.Context, id string, spec schema.SliceSpec) (schema.SliceStatus, error) {
	f, err := p.candidate(ctx, id, spec)
	if err != nil {
		return schema.SliceStatus{}, classified("import", id, err)
	}
	return f.status, nil
}

// Import is Importer.Import. What has the stack's mark already is left as it is.
func (p *Provider) Import(ctx context.Context, id string, spec schema.SliceSpec) (schema.SliceSpec, error) {
	f, err := p.candidate(ctx, id, spec)
	if err == nil && !f.owned(spec.Stack) {
		err = p.take(ctx, f)
	}
	if err != nil {
		return schema.SliceSpec{}, classified("import", id, err)
	}
	return f.status.Spec, nil
}

// take marks what was found.
func (p *Provider) take(ctx context.Context, f *found) error {
	made, err := p.order(f.status.Spec, &pending{})
	if err != nil {
		return err
	}
	if former := f.metadata[metadataStartupScript]; former != "" && former != made.metadata[metadataStartupScript] {
		made.metadata[replacedScript] = former
	}
	if err := f.mark(ctx, labelsOf(f.status.Spec), made.metadata); err != nil {
		return fmt.Errorf("mark it: %w", err)
	}
	p.known.add(place{engine: f.status.Spec.Cloud.Engine, zone: f.status.Spec.Zone, name: f.status.Spec.Name})
	return nil
}

// candidate reads what an id names and checks that it may become the slice.
func (p *Provider) candidate(ctx context.Context, id string, spec schema.SliceSpec) (*found, error) {
	to, err := p.targetOf(id, spec)
	if err != nil {
		return nil, err
	}
	spec.Name, spec.Zone, spec.Cloud.Engine = to.name, to.zone, to.engine
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	var f *found
	switch e := p.engines[to.engine].(type) {
	case *tpu:
		f, err = e.candidate(ctx, to, spec)
	case *gce:
		f, err = e.candidate(ctx, to, spec)
	default:
		err = failf(schema.ErrorInvalid, "engine %s imports nothing", to.engine)
	}
	if err != nil {
		return nil, err
	}
	spec.Cloud.Live = f.live
	f.status.Spec = spec
	return f, f.fits(spec)
}

// fits refuses what is another's, is not alive, or is not what is declared.
func (f *found) fits(spec schema.SliceSpec) error {
	if mark := f.labels[stackLabel]; mark != "" && mark != spec.Stack {
		return failf(schema.ErrorConflict, "it carries the mark of another stack, %s: remove it from that stack's state, then take its labels %s and %s away", mark, stackLabel, sliceLabel)
	}
	if f.status.Phase == schema.SliceDead || f.status.Phase == schema.SliceDeleting {
		return failf(schema.ErrorConflict, "%s; only what lives can be imported", f.status.Reason)
	}
	if f.owned(spec.Stack) {
		was, err := f.spec()
		if err != nil {
			return failf(schema.ErrorConflict, "it carries this stack's mark, but %w; take its label %s away to import it anew", err, stackLabel)
		}
		f.status.Spec = was
	}
	if len(f.differences) > 0 {
		return failf(schema.ErrorConflict, "it is not what is declared: %s", strings.Join(f.differences, "; "))
	}
	return nil
}

// differs notes a difference in words, unless there is none.
func (f *found) differs(what, is, declared string) {
	if is != declared {
		f.differences = append(f.differences, fmt.Sprintf("its %s is %s, and %s is declared", what, orNone(is), orNone(declared)))
	}
}

// differsIfStated is differs for what is as it comes where nothing is declared.
// Of paths, the last parts count.
func (f *found) differsIfStated(what, is, declared string) {
	if declared != "" {
		f.differs(what, path.Base(is), path.Base(declared))
	}
}

func orNone(s string) string {
	if s == "" || s == "." {
		return "none"
	}
	return s
}

// targetOf reads the id of a node, a queued resource or an instance: its path in
// the API, with or without the API's address, or ZONE/NAME.
func (p *Provider) targetOf(id string, spec schema.SliceSpec) (target, error) {
	text := id
	if i := strings.Index(text, "projects/"); i >= 0 {
		text = text[i:]
	}
	to := target{place: place{engine: schema.EngineTPU}}
	if parts := regexp.MustCompile(`^([a-z0-9-]+)/([a-z0-9-]+)$`).FindStringSubmatch(text); parts != nil {
		to.zone, to.name = parts[1], parts[2]
		to.engine = spec.Cloud.Engine
		if to.engine == "" {
			to.engine = schema.EngineOf(spec.TPU, to.zone, nil)
		}
		return to, nil
	}
	parts := regexp.MustCompile(`^projects/([^/]+)/(?:locations|zones)/([^/]+)/(nodes|queuedResources|instances)/([^/]+)$`).FindStringSubmatch(text)
	if parts == nil {
		return target{}, failf(schema.ErrorInvalid, "%q names nothing that can be imported: write ZONE/NAME, projects/P/locations/ZONE/nodes/NAME, "+
			"projects/P/locations/ZONE/queuedResources/NAME or projects/P/zones/ZONE/instances/NAME", id)
	}
	if parts[1] != p.config.Project && strings.Trim(parts[1], "0123456789") != "" {
		return target{}, failf(schema.ErrorInvalid, "it is in project %s, and the provider block says %s", parts[1], p.config.Project)
	}
	to.zone, to.name = parts[2], parts[4]
	switch parts[3] {
	case "queuedResources":
		to.queued = true
	case "instances":
		to.engine = schema.EngineGCE
	}
	return to, nil
}

// liveOf is what of the declared is so already; the rest is for an update.
func liveOf(declared schema.CloudLive, labels map[string]string, tags []string, external bool) schema.CloudLive {
	has := map[string]string{}
	maps.Copy(has, declared.LabelMap())
	maps.DeleteFunc(has, func(key, value string) bool { return labels[key] != value })
	kept := slices.DeleteFunc(slices.Clone(declared.TagList()), func(tag string) bool { return !slices.Contains(tags, tag) })
	return schema.CloudLive{Labels: schema.JoinLabels(has), Tags: strings.Join(kept, ","), InternalIPs: !external}
}

// settled waits until an operation is over. An import is asked for once, and not
// in every Step.
func settled(ctx context.Context, r reader, poll func() (bool, error)) error {
	const longest = 4 // doublings
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for try := 0; ; try++ {
		over, err := poll()
		if over || err != nil {
			return err
		}
		if err := r.wait(ctx, min(try, longest)); err != nil {
			return err
		}
	}
}

// StartCommand is what to run for a slice's machines to start fray's agent now,
// where they were not booted by fray.
func StartCommand(project string, spec schema.SliceSpec) string {
	const run = `--command="sudo google_metadata_script_runner startup"`
	where := fmt.Sprintf("%s --project=%s --zone=%s", spec.Name, project, spec.Zone)
	if spec.Cloud.Engine == schema.EngineGCE {
		return "gcloud compute ssh " + where + " " + run
	}
	return "gcloud compute tpus tpu-vm ssh " + where + " --worker=all " + run
}
