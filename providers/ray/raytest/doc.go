// Package raytest starts real Ray clusters of several nodes on one machine, for tests. It needs a Python
// interpreter with ray[default], which scripts/test-engines installs.
//
// Start with [Start].
package raytest
