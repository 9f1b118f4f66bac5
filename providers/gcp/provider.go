package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/gce"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpu"
	"github.com/fray-ml/fray/schema"
)

// Config configures New.
type Config struct {
	Project string
	// Bucket is the one that the stack's store is in, whose place Check reads
	// at; "": it is in none.
	Bucket string
	// Endpoint is one address, "http://HOST:PORT", that stands in for every
	// service of the cloud and asks for no credentials; "": the real services,
	// with application default credentials.
	Endpoint string
	// Local are services in this process, in place of an Endpoint; nil: there are none.
	Local *Local
	// Bootstrap states what the machines start with; nil: nothing.
	Bootstrap Bootstrapper
	// Now is the clock by which creations are counted; nil: time.Now.
	Now func() time.Time
	// CreatesPerMinute bounds the creations that are asked for; 0: 60. The
	// service rejects more than about 90 a minute for a project.
	CreatesPerMinute int
	// ReadsPerMinute bounds the direct reads of single slices; 0: 600.
	ReadsPerMinute int
	// Pace is how long an inventory is good for; 0: 5 s, or half a second with
	// an Endpoint. The service limits how often a project may be listed.
	Pace time.Duration
	// Backoff is the time before a read that failed is tried again, doubling;
	// 0: 250 ms.
	Backoff time.Duration
}

func (c Config) validate() error {
	if !regexp.MustCompile(`^[a-z0-9.:-]{1,63}$`).MatchString(c.Project) {
		return apierror.Errorf(schema.ErrorInvalid, "%q is no project's id; set project in the provider block", c.Project)
	}
	if c.CreatesPerMinute < 0 || c.ReadsPerMinute < 0 || c.Backoff < 0 || c.Pace < 0 {
		return apierror.Errorf(schema.ErrorInvalid, "creations and reads a minute and backoff must not be negative")
	}
	if c.Endpoint == "" {
		return nil
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "http" || u.Host == "" || u.Path != "" {
		return apierror.Errorf(schema.ErrorInvalid, "the endpoint %q is not of the form http://HOST:PORT", c.Endpoint)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.CreatesPerMinute = cmp.Or(c.CreatesPerMinute, 60)
	c.ReadsPerMinute = cmp.Or(c.ReadsPerMinute, 600)
	c.Backoff = cmp.Or(c.Backoff, 250*time.Millisecond)
	if c.Pace == 0 && c.Endpoint != "" {
		c.Pace = 500 * time.Millisecond
	}
	c.Pace = cmp.Or(c.Pace, 5*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// engine is what the engines know of the configuration.
func (c Config) engine() gcpengine.Config {
	return gcpengine.Config{Project: c.Project, Endpoint: c.Endpoint, Now: c.Now, Backoff: c.Backoff, Local: c.Local}
}

// Local are services of the cloud in this process.
type Local = gcpengine.Local

// Bootstrapper states what the machines of a slice find in their metadata, such as
// their startup script. Nothing of it may be secret.
type Bootstrapper interface {
	Metadata(spec schema.SliceSpec) (map[string]string, error)
}

// Provider makes slices on Google Cloud.
type Provider struct {
	config  Config
	engines map[schema.Engine]engine
	turns   *limiter
	reads   *budget // of direct reads
	pending pendings
	known   places
}

var (
	_ engine = (*tpu.Engine)(nil)
	_ engine = (*gce.Engine)(nil)

	_ providers.Provider = (*Provider)(nil)
	_ providers.Updater  = (*Provider)(nil)
	_ providers.Pacer    = (*Provider)(nil)
)

// New returns the provider of a project's slices. It finds the credentials, and
// makes no call. Close it after use.
func New(ctx context.Context, config Config) (*Provider, error) {
	if err := config.validate(); err != nil {
		return nil, apierror.Wrap("configure provider gcp", "", err)
	}
	p := newProvider(config)
	ctx = context.WithoutCancel(ctx) // it also fetches tokens later
	if err := p.connect(ctx); err != nil {
		return nil, errors.Join(apierror.Wrap("connect to Google Cloud", "", err), p.Close())
	}
	return p, nil
}

// connect opens the engines.
func (p *Provider) connect(ctx context.Context) error {
	nodes, err := tpu.New(ctx, p.config.engine())
	if err != nil {
		return err
	}
	p.engines[schema.EngineTPU] = nodes
	machines, err := gce.New(ctx, p.config.engine())
	if err != nil {
		return err
	}
	p.engines[schema.EngineGCE] = machines
	return nil
}

// newProvider is a provider without engines.
func newProvider(config Config) *Provider {
	config = config.withDefaults()
	return &Provider{config: config, engines: map[schema.Engine]engine{}, turns: &limiter{perMinute: config.CreatesPerMinute}, reads: &budget{perMinute: config.ReadsPerMinute}}
}

// Pace implements providers.Pacer.
func (p *Provider) Pace() time.Duration { return p.config.Pace }

// Close ends the provider's connections.
func (p *Provider) Close() error {
	var errs []error
	for _, each := range p.engines {
		errs = append(errs, each.Close())
	}
	return errors.Join(errs...)
}

// Create asks for a slice, or asks once how the creation that it asked for
// stands. What has to wait for its turn is an error of kind rate that states for
// how long.
func (p *Provider) Create(ctx context.Context, spec schema.SliceSpec) error {
	return apierror.Wrap("create slice", spec.Name, p.create(ctx, spec))
}

func (p *Provider) create(ctx context.Context, spec schema.SliceSpec) error {
	e, err := p.engineFor(spec)
	if err != nil {
		return err
	}
	c := p.pending.take(spec.Name)
	defer c.release()
	if goesOn, err := c.ask(ctx, e, spec, p.config.Now()); goesOn || err != nil {
		return err
	}
	if c.made == spec {
		// Where it is there, asking for it again would take another one's turn. Nor does
		// that take the reads of those in doubt.
		if p.config.Now().Sub(c.readAt) < readMadeEvery {
			return nil
		}
		is, err := p.get(ctx, spec)
		switch {
		case apierror.KindOf(err) == schema.ErrorRate && err != nil:
			return nil
		case err != nil:
			return err
		case isComing(is):
			c.readAt = p.config.Now()
			return nil
		}
		c.clear()
	}
	r, err := p.order(spec, c)
	if err != nil {
		return err
	}
	if wait := p.turns.take(turnOf(spec), p.config.Now()); wait > 0 {
		return waitFor(wait, p.config.CreatesPerMinute)
	}
	operation, err := e.Create(ctx, r)
	if kind := apierror.KindOf(err); kind == schema.ErrorRate {
		p.turns.drain(p.config.Now())
	}
	if err != nil {
		c.failed(r, err)
		return err
	}
	c.accepted(r, operation, p.config.Now())
	if operation == "" {
		c.made, c.readAt = spec, p.config.Now()
	}
	p.known.add(gcpengine.Place{Engine: mark.EngineOf(spec), Zone: spec.Zone, Name: spec.Name})
	return nil
}

// isComing reports whether what was read of a slice is there and needs nothing more.
func isComing(is *schema.SliceStatus) bool {
	return is != nil && (is.Phase == schema.SliceReady || is.Phase == schema.SliceCreating) && len(is.Down) == 0
}

// turnOf names a place in the queue. A slice that is asked for in another zone
// instead, under another name, keeps it.
func turnOf(spec schema.SliceSpec) string {
	return fmt.Sprintf("%s/%s/%d", spec.Stack, spec.Owner, spec.Index)
}

func waitFor(wait time.Duration, perMinute int) error {
	return &apierror.Error{
		Kind: schema.ErrorRate, After: wait,
		Err: fmt.Errorf("waiting for its turn: at most %d creations a minute", perMinute),
	}
}

// order is what is asked for with c, the slice's pending creation.
func (p *Provider) order(spec schema.SliceSpec, c *pending) (gcpengine.Order, error) {
	metadata, err := p.metadata(spec)
	if err != nil {
		return gcpengine.Order{}, err
	}
	id := c.order.ID
	if id == "" || c.order.Spec != spec {
		id = uuid.NewString()
	}
	return gcpengine.Order{Spec: spec, Metadata: metadata, ID: id}, nil
}

// metadata is that of a slice's machines.
func (p *Provider) metadata(spec schema.SliceSpec) (map[string]string, error) {
	metadata := map[string]string{}
	if p.config.Bootstrap != nil {
		boot, err := p.config.Bootstrap.Metadata(spec)
		if err != nil {
			return nil, apierror.Errorf(schema.ErrorInvalid, "prepare its startup: %w", err)
		}
		maps.Copy(metadata, boot)
	}
	text, err := mark.Encode(spec)
	if err != nil {
		return nil, err
	}
	metadata[mark.SpecKey] = text
	return metadata, nil
}

// engineFor checks what no engine could make.
func (p *Provider) engineFor(spec schema.SliceSpec) (engine, error) {
	if err := mark.CheckSpec(spec); err != nil {
		return nil, err
	}
	e, ok := p.engines[mark.EngineOf(spec)]
	if !ok {
		return nil, apierror.Errorf(schema.ErrorInvalid, "there is no engine %q; write %q or %q", spec.Cloud.Engine, schema.EngineTPU, schema.EngineGCE)
	}
	return e, nil
}

// Update changes a slice in place, or asks once how the update that it asked for
// stands.
func (p *Provider) Update(ctx context.Context, spec schema.SliceSpec) error {
	return apierror.Wrap("update slice", spec.Name, p.update(ctx, spec))
}

func (p *Provider) update(ctx context.Context, spec schema.SliceSpec) error {
	e, err := p.engineFor(spec)
	if err != nil {
		return err
	}
	c := p.pending.take("update/" + spec.Name)
	defer c.release()
	if goesOn, err := c.ask(ctx, e, spec, p.config.Now()); goesOn || err != nil {
		return err
	}
	r := gcpengine.Order{Spec: spec, ID: uuid.NewString()}
	operation, err := e.Update(ctx, r)
	if err != nil {
		return err
	}
	c.accepted(r, operation, p.config.Now())
	return nil
}

// Delete asks for a slice to go. Its place is in its spec, or known from the last
// inventory, or else it is read; its owner is read from itself.
func (p *Provider) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return apierror.Wrap("delete slice", spec.Name, p.delete(ctx, spec))
}

func (p *Provider) delete(ctx context.Context, spec schema.SliceSpec) error {
	stack, name := spec.Stack, spec.Name
	if err := mark.CheckName(name); err != nil {
		return err
	}
	if stack == "" {
		return apierror.Errorf(schema.ErrorInvalid, "no stack's mark to delete by")
	}
	at, err := p.placesOf(ctx, spec)
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(at))
	for i, each := range at {
		wait.Go(func() { errs[i] = p.engines[each.Engine].Delete(ctx, stack, each) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.pending.forget(name)
	return nil
}

// engine is one of the cloud's APIs that make slices. Its methods wait for
// nothing but their own calls, may be called concurrently, and return the
// service's errors, or an apierror.Error where they know better; the Provider
// classifies them.
type engine interface {
	// List lists all slices that are there, in one pass over the project.
	List(ctx context.Context, stack string) (gcpengine.Listing, error)
	// Get reads what there is of one slice of the stack, nil for nothing.
	Get(ctx context.Context, stack string, at gcpengine.Place) (*schema.SliceStatus, error)
	// Create asks for a slice and returns the name of the operation that
	// makes it, "" if there is nothing to wait for: it was there already.
	Create(ctx context.Context, r gcpengine.Order) (operation string, err error)
	// Poll asks once how a creation or update stands and returns the operation
	// to ask for next: the same while it goes on, "" at the end. An operation
	// that has failed is an error, and so is one that could not be asked for,
	// which is one of kind unavailable: see askError.
	Poll(ctx context.Context, r gcpengine.Order, operation string) (next string, err error)
	// Update is Updater.Update, and returns an operation as Create does.
	Update(ctx context.Context, r gcpengine.Order) (operation string, err error)
	// Delete reads what is there and asks for it to go if it has the stack's mark.
	Delete(ctx context.Context, stack string, at gcpengine.Place) error
	// HostReports is HostReader's.
	HostReports(ctx context.Context, at gcpengine.Place, hosts []int) ([]gcpengine.HostReport, error)
	Close() error
}
