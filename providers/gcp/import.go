package gcp

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/gce"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpu"
	"github.com/fray-ml/fray/schema"
)

var _ providers.Importer = (*Provider)(nil)

// What fray did not make is taken over in place: it gets the labels and the
// metadata that a slice of fray's has, and keeps its name. Its machines do not
// know of it until they run their startup script; see [StartCommand].

// replacedScript keeps the startup script that a machine had before.
const replacedScript = "fray-replaced-startup-script"

// Find is Importer.Find.
func (p *Provider) Find(ctx context.Context, id string, spec schema.SliceSpec) (schema.SliceStatus, error) {
	f, err := p.candidate(ctx, id, spec)
	if err != nil {
		return schema.SliceStatus{}, apierror.Wrap("import", id, err)
	}
	return f.Status, nil
}

// Import is Importer.Import. What has the stack's mark already is left as it is.
func (p *Provider) Import(ctx context.Context, id string, spec schema.SliceSpec) (schema.SliceSpec, error) {
	f, err := p.candidate(ctx, id, spec)
	if err == nil && !f.Owned(spec.Stack) {
		err = p.take(ctx, f)
	}
	if err != nil {
		return schema.SliceSpec{}, apierror.Wrap("import", id, err)
	}
	return f.Status.Spec, nil
}

// take marks what was found.
func (p *Provider) take(ctx context.Context, f *gcpengine.Found) error {
	made, err := p.order(f.Status.Spec, &pending{})
	if err != nil {
		return err
	}
	if former := f.Metadata[mark.KeyStartupScript]; former != "" && former != made.Metadata[mark.KeyStartupScript] {
		made.Metadata[replacedScript] = former
	}
	if err := f.Mark(ctx, mark.Labels(f.Status.Spec), made.Metadata); err != nil {
		return fmt.Errorf("mark it: %w", err)
	}
	p.known.add(gcpengine.Place{Engine: f.Status.Spec.Cloud.Engine, Zone: f.Status.Spec.Zone, Name: f.Status.Spec.Name})
	return nil
}

// candidate reads what an id names and checks that it may become the slice.
func (p *Provider) candidate(ctx context.Context, id string, spec schema.SliceSpec) (*gcpengine.Found, error) {
	to, err := p.targetOf(id, spec)
	if err != nil {
		return nil, err
	}
	spec.Name, spec.Zone, spec.Cloud.Engine = to.Name, to.Zone, to.Engine
	if err := mark.CheckSpec(spec); err != nil {
		return nil, err
	}
	var f *gcpengine.Found
	switch e := p.engines[to.Engine].(type) {
	case *tpu.Engine:
		f, err = e.Candidate(ctx, to, spec)
	case *gce.Engine:
		f, err = e.Candidate(ctx, to, spec)
	default:
		err = apierror.Errorf(schema.ErrorInvalid, "engine %s imports nothing", to.Engine)
	}
	if err != nil {
		return nil, err
	}
	spec.Cloud.Live = f.Live
	f.Status.Spec = spec
	return f, f.Fits(spec)
}

// targetOf reads the id of a node, a queued resource or an instance: its path in
// the API, with or without the API's address, or ZONE/NAME.
func (p *Provider) targetOf(id string, spec schema.SliceSpec) (gcpengine.Target, error) {
	text := id
	if i := strings.Index(text, "projects/"); i >= 0 {
		text = text[i:]
	}
	to := gcpengine.Target{Place: gcpengine.Place{Engine: schema.EngineTPU}}
	if parts := regexp.MustCompile(`^([a-z0-9-]+)/([a-z0-9-]+)$`).FindStringSubmatch(text); parts != nil {
		to.Zone, to.Name = parts[1], parts[2]
		to.Engine = spec.Cloud.Engine
		if to.Engine == "" {
			to.Engine = accelerators.EngineOf(spec.TPU, to.Zone, nil)
		}
		return to, nil
	}
	parts := regexp.MustCompile(`^projects/([^/]+)/(?:locations|zones)/([^/]+)/(nodes|queuedResources|instances)/([^/]+)$`).FindStringSubmatch(text)
	if parts == nil {
		return gcpengine.Target{}, apierror.Errorf(schema.ErrorInvalid, "%q names nothing that can be imported: write ZONE/NAME, projects/P/locations/ZONE/nodes/NAME, "+
			"projects/P/locations/ZONE/queuedResources/NAME or projects/P/zones/ZONE/instances/NAME", id)
	}
	if parts[1] != p.config.Project && strings.Trim(parts[1], "0123456789") != "" {
		return gcpengine.Target{}, apierror.Errorf(schema.ErrorInvalid, "it is in project %s, and the provider block states %s", parts[1], p.config.Project)
	}
	to.Zone, to.Name = parts[2], parts[4]
	switch parts[3] {
	case "queuedResources":
		to.Queued = true
	case "instances":
		to.Engine = schema.EngineGCE
	}
	return to, nil
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
