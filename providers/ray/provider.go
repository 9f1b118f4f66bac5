package ray

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// Config is the cluster, and what agents get there.
type Config struct {
	Address   string // of the dashboard, see ParseAddress
	Namespace string // of Ray, for the actors of drivers; "": "fray"
	TokenFile string // with the cluster's token; "": where Ray finds it
	// Program is the file of the program that nodes run: fray for linux. It is asked for when a slice
	// is created.
	Program func() (string, error)
	// StoreLocation, KeyFile and Workspace are handed to the agents. A directory, and the key in
	// it, have the same path on all nodes. StoreLocation is required.
	StoreLocation string
	KeyFile       string // "": agents read the key in the store
	Workspace     string // "": "default"
}

// Provider makes slices of jobs of a Ray cluster.
type Provider struct {
	config  Config
	client  *client
	shipped shipped

	seen seen
}

var (
	_ providers.Provider   = (*Provider)(nil)
	_ providers.HostReader = (*Provider)(nil)
)

// New returns the provider of a cluster. It calls nothing.
func New(c Config) (*Provider, error) {
	address, err := parseAddress(c.Address)
	if err != nil {
		return nil, fmt.Errorf("configure provider ray: %w", err)
	}
	if c.StoreLocation == "" {
		return nil, errors.New("configure provider ray: no store for the agents")
	}
	if c.Namespace == "" {
		c.Namespace = "fray"
	}
	return &Provider{
		config: c, seen: seen{last: map[string]int{}, former: map[string]bool{}},
		client: &client{address: address, token: tokenSource{file: c.TokenFile}, http: &http.Client{}},
	}, nil
}

// Inventory lists the slices of a stack, or of all for "", by one list of Ray's jobs.
func (p *Provider) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	c, err := p.read(ctx, stack)
	if err != nil {
		return schema.Inventory{}, classified("list slices", "", err)
	}
	return c.inventory(stack), nil
}

// read reads the jobs, and what else is needed to tell how the slices of a stack stand.
func (p *Provider) read(ctx context.Context, stack string) (*cluster, error) {
	if err := p.meet(ctx); err != nil {
		return nil, err
	}
	jobs, err := p.client.jobs(ctx)
	if err != nil {
		return nil, err
	}
	c := &cluster{slices: histories(jobs)}
	p.seen.add(c.slices)
	return c, p.complete(ctx, c, stack)
}

// complete reads the placement groups, and the nodes, where they matter.
func (p *Provider) complete(ctx context.Context, c *cluster, stack string) error {
	if !c.isRunning(stack) {
		return nil
	}
	groups, err := p.client.groups(ctx)
	if err != nil {
		return err
	}
	c.groups = make(map[string]groupState, len(groups))
	for _, g := range groups {
		if g.State != groupRemoved {
			c.groups[g.Name] = g.State
		}
	}
	if c.isPlacing(stack) {
		c.nodes, err = p.client.nodes(ctx)
	}
	return err
}

// history reads the submissions of one slice: those of the list, and directly the newest that is
// known and those after it. It is nil where Ray says that there are none.
func (p *Provider) history(ctx context.Context, name string) (history, error) {
	jobs, err := p.client.jobs(ctx)
	if err != nil {
		return nil, err
	}
	listed := histories(jobs)
	p.seen.add(listed)
	known := map[string]job{}
	for _, a := range listed[name] {
		known[a.SubmissionID] = a.job
	}
	for n := p.seen.newest(name); ; n++ {
		found, there, err := p.client.job(ctx, idOf(name, n))
		if err != nil {
			return nil, err
		}
		if !there {
			delete(known, idOf(name, n)) // it went meanwhile
			break
		}
		known[found.SubmissionID] = found
	}
	jobs = jobs[:0]
	for _, j := range known {
		jobs = append(jobs, j)
	}
	read := histories(jobs)
	p.seen.add(read)
	return read[name], nil
}

// Get reads the newest submission of a slice by its id.
func (p *Provider) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	st, found, err := p.get(ctx, spec)
	if err != nil {
		return schema.SliceStatus{}, false, classified("read slice", spec.Name, err)
	}
	return st, found, nil
}

func (p *Provider) get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	var none schema.SliceStatus
	if !isName(spec.Name) {
		return none, false, failf(schema.ErrorInvalid, "%q is no slice's name", spec.Name)
	}
	h, err := p.history(ctx, spec.Name)
	if err != nil {
		return none, false, err
	}
	if len(h) == 0 {
		return none, false, p.checkSession(ctx, spec.Name)
	}
	of := h.subject()
	switch {
	case of.stack() != spec.Stack || h.stands() == standsGone:
		return none, false, nil
	case of.bad != nil:
		return none, false, fmt.Errorf("%w: %w", errUnreadable, of.bad)
	}
	c := &cluster{slices: map[string]history{spec.Name: h}}
	if err := p.complete(ctx, c, spec.Stack); err != nil {
		return none, false, err
	}
	st, found := c.status(h)
	return st, found, nil
}

// recordsFor is how long after its end the record of a job stays: Ray may write one again that was
// removed too soon.
const recordsFor = 10 * time.Minute

// sweep removes records of former submissions of a slice, but for the newest, by which later ones are
// numbered. What cannot be removed now is removed another time.
func (p *Provider) sweep(ctx context.Context, h history) {
	if len(h) == 0 || len(h.live()) > 0 && h.newest().withdraw {
		return
	}
	for _, a := range h[:len(h)-1] {
		if a.Status.ended() && a.EndTime > 0 && time.Since(time.UnixMilli(a.EndTime)) > recordsFor {
			if p.client.remove(ctx, a.SubmissionID) != nil {
				return
			}
		}
	}
}

// classified wraps an error once, at the provider's boundary.
func classified(op, name string, err error) error {
	if err == nil {
		return nil
	}
	kind := schema.ErrorUnavailable
	if known, ok := errors.AsType[*kindError](err); ok {
		kind = known.kind
	}
	return &providers.Error{Kind: kind, Op: op, Name: name, Err: err}
}
