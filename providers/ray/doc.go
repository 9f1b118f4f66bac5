// Package ray is a provider whose slices are jobs of a Ray cluster that exists already. It speaks
// Ray's Jobs API, plain HTTP, so that fray needs neither Ray nor Python.
//
// A slice is one job. Its driver (package driver) holds a placement group with a bundle for each
// host and runs one agent in each. The metadata of a job have the stack's mark and the spec;
// its submission id, fray_SLICE_N, is the key by which a creation is made once. Ray never reuses
// an id safely, so each submission of a slice has the next N. A submission withdraws all earlier
// ones: a deletion submits one that does nothing, which lists show at once and the driver of a
// job that waited reads before it starts an agent, and then stops the earlier job.
//
// It decides nothing and keeps no record of its own. Start with [New] and submission.go.
package ray
