package ray

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// maxListed is how many items the state API lists at most.
const maxListed = 10_000

// jobs lists all jobs that were submitted.
func (c *client) jobs(ctx context.Context) ([]job, error) {
	var listed []job
	if err := c.call(ctx, http.MethodGet, "/api/jobs/", nil, &listed); err != nil {
		return nil, err
	}
	if listed == nil { // "null" is no list
		return nil, failf(schema.ErrorUnavailable, "Ray at %s returned no list of jobs", c.address)
	}
	return listed, nil
}

// job reads one job. It reports false only where Ray itself says that there is none: a proxy
// without a cluster behind it answers 404 as well.
func (c *client) job(ctx context.Context, id string) (job, bool, error) {
	var found job
	err := c.call(ctx, http.MethodGet, "/api/jobs/"+url.PathEscape(id), nil, &found)
	if hasCode(err, http.StatusNotFound) {
		_, err := c.version(ctx)
		return job{}, false, err
	}
	if err == nil && found.SubmissionID != id {
		err = failf(schema.ErrorUnavailable, "Ray at %s returned job %q for %q", c.address, found.SubmissionID, id)
	}
	return found, err == nil, err
}

// version reads which Ray answers at the address. What answers and is no Ray is an error.
func (c *client) version(ctx context.Context) (version, error) {
	var v version
	err := c.call(ctx, http.MethodGet, "/api/version", nil, &v)
	if hasCode(err, http.StatusNotFound) || err == nil && v.RayVersion == "" {
		err = failf(schema.ErrorUnavailable, "what answers at %s is not Ray's dashboard: correct address in provider \"ray\"", c.address)
	}
	return v, err
}

// submit asks for a job. It reports false where a submission has the id: Ray answers that, like
// failures, with status 500, so that the job itself is read to find out.
func (c *client) submit(ctx context.Context, s submission) (bool, error) {
	err := c.call(ctx, http.MethodPost, "/api/jobs/", s, nil)
	if !hasCode(err, http.StatusInternalServerError) && !hasCode(err, http.StatusBadRequest) {
		return err == nil, err
	}
	taken, there, readErr := c.job(ctx, s.SubmissionID)
	if readErr != nil || !there {
		return false, err
	}
	if _, isOurs := readAttempt(taken); !isOurs {
		return false, failf(schema.ErrorConflict, "job %s has the id of a slice and no stack's mark: remove it with \"ray job delete %s\"", taken.SubmissionID, taken.SubmissionID)
	}
	return false, nil
}

// stop asks a job to end. One that is not there, or has ended, is no error.
func (c *client) stop(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodPost, "/api/jobs/"+url.PathEscape(id)+"/stop", nil, nil)
	if hasCode(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// remove removes the record of a job that has ended.
func (c *client) remove(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/api/jobs/"+url.PathEscape(id), nil, nil)
}

// logs are what a job has written.
func (c *client) logs(ctx context.Context, id string) (string, error) {
	var answer struct {
		Logs string `json:"logs"`
	}
	err := c.call(ctx, http.MethodGet, "/api/jobs/"+url.PathEscape(id)+"/logs", nil, &answer)
	return answer.Logs, err
}

// groups lists the placement groups that are not removed.
func (c *client) groups(ctx context.Context) ([]placementGroup, error) {
	query := url.Values{
		"limit": {strconv.Itoa(maxListed)}, "detail": {"0"},
		"filter_keys": {"state"}, "filter_predicates": {"!="}, "filter_values": {string(groupRemoved)},
	}
	return state[placementGroup](ctx, c, "/api/v0/placement_groups?"+query.Encode())
}

// nodes lists the nodes that are alive.
func (c *client) nodes(ctx context.Context) ([]node, error) {
	query := url.Values{
		"limit": {strconv.Itoa(maxListed)}, "detail": {"1"},
		"filter_keys": {"state"}, "filter_predicates": {"="}, "filter_values": {"ALIVE"},
	}
	return state[node](ctx, c, "/api/v0/nodes?"+query.Encode())
}

// state makes one call of the state API. A list that is not whole is an error.
func state[T any](ctx context.Context, c *client, path string) ([]T, error) {
	var answer listing[T]
	if err := c.call(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return nil, err
	}
	of := answer.Data.Result
	what, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v0/"), "?")
	switch {
	case !answer.Result:
		return nil, failf(schema.ErrorUnavailable, "Ray at %s cannot list its %s: %s", c.address, what, lastLine(answer.Msg))
	case of.Partial != "" || of.Returned < of.Total:
		return nil, failf(schema.ErrorUnavailable, "Ray at %s lists %d of %d %s: %s", c.address, of.Returned, of.Total, what, of.Partial)
	}
	return of.Result, nil
}

// hasPackage reports whether the cluster has a package, and keeps it from being removed for some
// minutes.
func (c *client) hasPackage(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.send(ctx, http.MethodGet, "/api/packages/gcs/"+url.PathEscape(name), nil)
	if hasCode(err, http.StatusNotFound) {
		return false, nil
	}
	return err == nil, err
}

// upload puts a package into the cluster.
func (c *client) upload(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	_, err := c.send(ctx, http.MethodPut, "/api/packages/gcs/"+url.PathEscape(name), content)
	if hasCode(err, http.StatusRequestEntityTooLarge) {
		return failf(schema.ErrorInvalid, "Ray takes packages of at most 100 MiB, and that of fray's program has %d MiB: use a released program, which has no debugging information", len(content)>>20)
	}
	return err
}
