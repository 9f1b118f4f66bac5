// Package hostapi serves a host: the cluster API to its tasks, passed on to the
// controller that leads, and to the controller and users the host itself, with logs and
// commands beside tasks. It checks the tokens of the latter.
//
// It leaves out starting and ending tasks. Start with [Open].
package hostapi
