package ray

import (
	"context"
	"slices"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// maxRaces is how often another client may be faster before a call ends.
const maxRaces = 16

// Create submits a slice's job. Of several calls at once one does, by the id, and the others adopt
// what it made.
func (p *Provider) Create(ctx context.Context, spec schema.SliceSpec) error {
	return classified("create slice", spec.Name, p.create(ctx, spec))
}

func (p *Provider) create(ctx context.Context, spec schema.SliceSpec) error {
	if err := checkSpec(spec); err != nil {
		return err
	}
	bundles, err := bundlesOf(spec)
	if err != nil {
		return err
	}
	for range maxRaces {
		h, err := p.history(ctx, spec.Name)
		if err != nil {
			return err
		}
		if done, err := p.adopt(ctx, h, spec); done || err != nil {
			return err
		}
		p.sweep(ctx, h)
		if done, err := p.submit(ctx, spec, nextOf(h), bundles); done || err != nil {
			return err
		}
	}
	return failf(schema.ErrorUnavailable, "other clients create and delete the slice at the same time")
}

// nextOf is the number of the next submission.
func nextOf(h history) int {
	if len(h) == 0 {
		return 1
	}
	return h.newest().n + 1
}

// adopt reports whether the slice is there as it is asked for. The error of one that has failed
// is returned once: it is withdrawn, so that the next call submits it again.
func (p *Provider) adopt(ctx context.Context, h history, spec schema.SliceSpec) (bool, error) {
	if len(h) == 0 || h.stands() == standsGone {
		return false, nil
	}
	of := h.subject()
	switch {
	case of.stack() != spec.Stack:
		return false, failf(schema.ErrorConflict, "another stack has a slice of this name (job %s)", of.SubmissionID)
	case h.stands() == standsGoing:
		return false, failf(schema.ErrorUnavailable, "the slice of this name is still being deleted")
	case of.bad != nil:
		return false, failf(schema.ErrorUnavailable, "%s", of.unreadable().Text)
	case of.spec != spec:
		return false, failf(schema.ErrorConflict, "the slice is there and was made otherwise; delete it first")
	case h.stands() == standsDead:
		kind, reason := of.failure()
		if err := p.withdraw(ctx, h, spec); err != nil {
			return false, err
		}
		return false, failf(kind, "%s", reason)
	}
	return true, nil
}

// submit ships the program and submits a slice; false where another client was faster.
func (p *Provider) submit(ctx context.Context, spec schema.SliceSpec, n int, bundles []bundle) (bool, error) {
	file, err := p.config.Program()
	if err != nil {
		return false, err
	}
	name, digest, err := p.shipped.name(file)
	if err != nil {
		return false, err
	}
	if err := p.shipped.ship(ctx, p.client, file, name); err != nil {
		return false, err
	}
	s, err := submissionOf(spec, n, name, launch{
		Namespace: p.config.Namespace, Bundles: bundles, TPU: spec.TPU, TPUHead: headOf(spec), Args: p.agentArgs(spec), Digest: digest,
	})
	if err != nil {
		return false, err
	}
	return p.client.submit(ctx, s)
}

// agentArgs are the arguments of fray on a node, but for what only the driver knows.
func (p *Provider) agentArgs(spec schema.SliceSpec) []string {
	args := []string{"agent", "--store", p.config.StoreLocation, "--shared", "--slice", spec.Name}
	for _, each := range []struct{ flag, value string }{
		{"--key-file", p.config.KeyFile}, {"--workspace", p.config.Workspace},
	} {
		if each.value != "" {
			args = append(args, each.flag, each.value)
		}
	}
	return args
}

// Delete withdraws a slice, which lists show at once and its driver heeds before it starts agents,
// and stops its job.
func (p *Provider) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return classified("delete slice", spec.Name, p.delete(ctx, spec))
}

func (p *Provider) delete(ctx context.Context, spec schema.SliceSpec) error {
	if !isName(spec.Name) {
		return failf(schema.ErrorInvalid, "%q is no slice's name", spec.Name)
	}
	for range maxRaces {
		h, err := p.history(ctx, spec.Name)
		if err != nil || len(h) == 0 || h.stands() == standsGone {
			return err
		}
		if h.subject().stack() != spec.Stack {
			return failf(schema.ErrorPermission, "the slice is another stack's")
		}
		if h.newest().withdraw {
			return p.stopAll(ctx, h)
		}
		if err := p.withdraw(ctx, h, spec); err != nil {
			return err
		}
	}
	return failf(schema.ErrorUnavailable, "other clients create and delete the slice at the same time")
}

// withdraw submits what withdraws all submissions so far; it is no error where another client was
// faster, whose submission is read next.
func (p *Provider) withdraw(ctx context.Context, h history, spec schema.SliceSpec) error {
	_, err := p.client.submit(ctx, withdrawalOf(spec, nextOf(h)))
	return err
}

// stopAll stops what was withdrawn and has not ended.
func (p *Provider) stopAll(ctx context.Context, h history) error {
	for _, a := range h.live() {
		if err := p.client.stop(ctx, a.SubmissionID); err != nil {
			return err
		}
	}
	return nil
}

// HostReports are what drivers report of agents that do not run, by their logs.
func (p *Provider) HostReports(ctx context.Context, spec schema.SliceSpec, hosts []int) ([]providers.HostReport, error) {
	logs, err := p.client.logs(ctx, idOf(spec.Name, p.seen.newest(spec.Name)))
	if err != nil {
		return nil, classified("read reports of", spec.Name, err)
	}
	reports := hostReports(logs)
	return slices.DeleteFunc(reports, func(r providers.HostReport) bool { return !slices.Contains(hosts, r.Host) }), nil
}
