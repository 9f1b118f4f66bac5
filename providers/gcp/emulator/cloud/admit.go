package cloud

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Call is one call to an API before it is carried out.
type Call struct {
	API        string // "tpu.googleapis.com"
	Title      string // "Cloud TPU API"
	Method     string // "CreateNode"; with Creates it is what the rate limit counts
	Permission string // "tpu.nodes.create"
	Project    string
	Zone       string // "" and "-": none
	Resource   string // "projects/p/locations/z"
	Creates    bool
}

// admission decides how calls are answered before they are carried out, and which
// lists are wrong.
type admission struct {
	*runner
	*rules
	called     map[string]uint64      // calls so far, by method and resource
	minutes    map[string][]time.Time // creations of the last minute, by project and method
	outages    []window
	listFaults []*listFault
}

// Admit lets a call wait for the API's latency and returns why it is rejected before
// it does anything, nil if it may proceed. lost states that its answer must be
// replaced by [Lost]: it did its work, and its caller does not learn of it.
func (c *admission) Admit(ctx context.Context, call Call) (lost bool, err error) {
	c.mu.Lock()
	rejected := c.reject(call)
	api := &c.scenario.API
	dice := c.callDice(call)
	wait := api.Latency.draw(dice)
	if rejected == nil && api.FailureRate > 0 && dice.Float64() < api.FailureRate {
		rejected = Lost()
	}
	if rejected == nil && call.Creates {
		rejected = c.overRate(call.Project, call.Method)
	}
	lost = rejected == nil && api.LostReplies > 0 && dice.Float64() < api.LostReplies
	c.mu.Unlock()
	if err := c.wait(ctx, wait); err != nil {
		return false, err
	}
	if rejected != nil {
		return false, rejected
	}
	return lost, nil
}

// Lost is the answer of a service that is not well for a moment.
func Lost() *Error {
	return newError(ReasonUnavailable, "The service is currently unavailable.")
}

// wait lets time pass, none on a virtual clock, which may stand still.
func (c *admission) wait(ctx context.Context, d time.Duration) error {
	if _, virtual := c.clock.(*Virtual); virtual || d <= 0 {
		return nil
	}
	due := make(chan struct{})
	stop := c.clock.AfterFunc(c.clock.Now().Add(d), func() { close(due) })
	defer stop()
	select {
	case <-due:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the API: %w", context.Cause(ctx))
	}
}

// reject is what stands against a call whatever its contents.
func (c *admission) reject(call Call) *Error {
	api := &c.scenario.API
	switch {
	case api.Unauthenticated:
		return newError(ReasonUnauthenticated, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie"+
			" or other valid authentication credential.")
	case !c.HasProject(call.Project) || slices.Contains(api.Deny, call.Permission):
		e := newError(ReasonDenied, "Permission '%s' denied on resource '//%s/%s' (or it may not exist).", call.Permission, call.API, call.Resource)
		e.Permission, e.API = call.Permission, call.API
		return e
	case slices.Contains(api.Disabled, call.API):
		e := newError(ReasonDisabled, "%s has not been used in project %s before or it is disabled. Enable it by visiting"+
			" https://console.developers.google.com/apis/api/%s/overview?project=%s then retry.", call.Title, call.Project, call.API, call.Project)
		e.API = call.API
		return e
	case call.Zone != "" && call.Zone != "-" && c.out(call.Zone):
		return Lost()
	}
	return nil
}

func (c *admission) out(zone string) bool {
	now := c.clock.Now()
	return slices.ContainsFunc(c.outages, func(w window) bool { return w.covers(zone, "", now) })
}

// Unreachable are the zones that a list over all zones leaves out this time.
func (c *admission) Unreachable() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	zones := c.Zones()
	var out []string
	for _, zone := range zones {
		if c.out(zone) {
			out = append(out, zone)
		}
	}
	dice := c.dice("unreachable", uint64(c.clock.Now().UnixNano())) // the same for all lists of one moment
	if p := c.scenario.API.UnreachableRate; p > 0 && dice.Float64() < p {
		if zone := zones[dice.IntN(len(zones))]; !slices.Contains(out, zone) {
			out = append(out, zone)
		}
	}
	return out
}

// overRate counts a creation and reports if it was one too many in this minute.
func (c *admission) overRate(project, method string) *Error {
	now := c.clock.Now()
	key := project + " " + method
	recent := c.minutes[key]
	for len(recent) > 0 && !recent[0].After(now.Add(-time.Minute)) {
		recent = recent[1:]
	}
	if len(recent) >= c.createLimit {
		c.minutes[key] = recent
		e := newError(ReasonRate, "Quota limit '%s requests per minute' has been exceeded. Limit: %d per minute.", method, c.createLimit)
		e.Limit = c.createLimit
		return e
	}
	c.minutes[key] = append(recent, now)
	return nil
}

// callDice decide about one call: by its method and resource, and how many of
// these there were. Calls that are made at the same time do not change each
// other's luck by which of them comes first.
func (c *admission) callDice(call Call) *rand.Rand {
	key := call.Method + " " + call.Project + " " + call.Zone + " " + call.Resource
	c.called[key]++
	return c.dice(key, c.called[key])
}

// Enabled reports whether an API is enabled, "compute.googleapis.com".
func (c *admission) Enabled(api string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.Contains(c.scenario.API.Disabled, api)
}

// Permits reports whether callers have a permission, "compute.instances.create".
func (c *admission) Permits(permission string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.Contains(c.scenario.API.Deny, permission)
}

// Constrained reports whether a constraint of the organization is enforced.
func (c *admission) Constrained(constraint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.scenario.API.Constraints, constraint)
}

// SetAPI has the API itself behave differently from now on.
func (c *admission) SetAPI(api API) { c.do(func() { c.scenario.API = api }) }
