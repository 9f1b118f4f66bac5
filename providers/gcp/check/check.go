package check

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// How long a check takes at most, and how many calls it makes at a time.
const (
	checkLimit = 10 * time.Second
	checkCalls = 16
)

// Config configures findProblems.
type Config struct {
	Project string
	// Bucket is the one of the stack's store, whose location is compared with that of
	// the slices; "": none.
	Bucket string
	// Endpoint stands in for every service, without credentials; "": the real services.
	Endpoint string
	TPU      tpuapi.TpuClient // nil: the TPU API is not checked
}

// Problems finds what cannot work in the project, in few calls that change nothing:
// credentials, project, APIs and permissions, then zones, types, runtime
// versions, machine types, quotas, networks, service accounts, disks, and where
// the stack's bucket is. What these credentials may not read counts as good.
//
// Quotas of the TPU API are not checked, since most accounts may not read them: those of
// Compute Engine are. That a quota is used up shows when a slice is asked for.
func Problems(ctx context.Context, config Config, desired schema.Desired) []providers.Problem {
	c := &checker{config: config, tpu: config.TPU, wishes: wishesOf(&desired), reported: map[string]bool{}, unreadable: map[string]bool{}}
	if len(c.wishes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, errors.New("it takes too long"))
	defer cancel()
	var err error
	if c.rest, err = newCheckREST(ctx, config.Endpoint); err != nil {
		c.credentials(err)
		return c.problems
	}
	c.slots = make(chan struct{}, checkCalls)
	c.run(ctx)
	return c.sorted()
}

// checker looks everything up once, and collects what is wrong.
type checker struct {
	config Config
	wishes []wish
	rest   *checkREST
	tpu    tpuapi.TpuClient

	slots chan struct{} // as wide as calls may be made at a time

	mu       sync.Mutex
	problems []providers.Problem
	reported map[string]bool
	// unreadable is what these credentials may not look up.
	unreadable map[string]bool
	passing    error // the first error that may pass
	// unauthenticated is set once an API rejected the credentials and that was reported.
	unauthenticated bool
}

// run makes the calls that everything needs first: where they are rejected, so is
// everything else.
func (c *checker) run(ctx context.Context) {
	if !c.access(ctx) {
		return
	}
	places := c.places(ctx)
	var group sync.WaitGroup
	for _, check := range []func(context.Context){
		c.permissions,
		func(ctx context.Context) { c.shapes(ctx, places) },
		func(ctx context.Context) { c.runtimes(ctx, places) },
		c.quotas, c.allGPUQuota, c.acceleratorQuotas, c.networks, c.reach, c.guestAttributes, c.accounts, c.disks, c.bucket,
	} {
		group.Go(func() { check(ctx) })
	}
	group.Wait()
	c.addUnread()
	if c.passing != nil {
		c.add(providers.Problem{
			Attribute: "project", Warning: true, Summary: "Cloud could not be checked",
			Detail: "Google Cloud did not answer all that was asked of it (" + c.passing.Error() + "), so some mistakes may only be seen once it is asked for slices.",
		})
	}
}

// add notes a problem, once.
func (c *checker) add(p providers.Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.Join([]string{p.Addr.Base().String(), p.Attribute, p.Summary, p.Detail}, "\x00")
	if !c.reported[key] {
		c.reported[key] = true
		c.problems = append(c.problems, p)
	}
}

// sorted are the problems in an order that does not depend on which call was
// answered first.
func (c *checker) sorted() []providers.Problem {
	slices.SortStableFunc(c.problems, func(a, b providers.Problem) int {
		return cmp.Or(a.Addr.Compare(b.Addr), strings.Compare(a.Attribute, b.Attribute),
			strings.Compare(a.Summary, b.Summary), strings.Compare(a.Detail, b.Detail))
	})
	return c.problems
}

// eachAtOnce calls a function for every item at the same time, as far as calls may be
// made at a time.
func eachAtOnce[T any](c *checker, items []T, do func(T)) {
	var group sync.WaitGroup
	for _, item := range items {
		group.Go(func() {
			c.slots <- struct{}{}
			defer func() { <-c.slots }()
			do(item)
		})
	}
	group.Wait()
}

// passes notes an error that is no finding, such as one of the network, or a
// missing right to look something up, and that nothing follows from.
func (c *checker) passes(err error) {
	if err == nil || apierror.KindOf(err) != schema.ErrorUnavailable && apierror.KindOf(err) != schema.ErrorRate {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passing == nil {
		c.passing = apierror.Brief(err)
	}
}
