package gce

import (
	"context"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Engine makes slices of Compute Engine machines. A slice of one host is an instance
// of its name. A slice of several is a managed instance group of its name, with
// an instance template and, with TPUs, a workload policy:
//
//	created   template, policy, group, for flex-start a resize request
//	deleted   group, policy, template
//
// So a slice whose creation or deletion was cut short anywhere always has a
// template, by which it is listed, and which says whose it is.
type Engine struct {
	api
	progress
	specs mark.Specs
}

// New finds the credentials, and makes no call.
func New(ctx context.Context, config engine.Config) (*Engine, error) {
	opened, err := openAPI(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Engine{api: opened, progress: progress{now: config.Now, notes: map[string]*note{}}}, nil
}

func invalid(err error) error { return &apierror.Error{Kind: schema.ErrorInvalid, Err: err} }
