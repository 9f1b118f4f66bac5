// Package artifact brings what tasks need from the store to a host: bundles and
// pickled callables. Each is fetched once, and fetched again where it is damaged.
//
// It leaves out how bundles are packed and split; see package bundle. Start with [Fetcher].
package artifact
