// Package accesstest has state access and leases for tests of services: [Fixed],
// whose views a test sets, and [Simulation], over the real plan.
package accesstest
