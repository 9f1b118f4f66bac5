// Package storage is a Cloud Storage service for rehearsals and tests: its JSON
// API as far as cloud.google.com/go/storage and this module use it, on buckets
// in memory or in a directory.
//
// What a store depends on is exact: preconditions on every request that takes
// them, generations, versions, one write a second for each object where asked
// for. What a store has to live with can be switched on: 503s, requests that
// are carried out and whose reply is lost, latency, permissions that are
// missing.
//
// It leaves out access control beyond that, signed addresses, lifecycle rules, holds and notifications. A call that it does not know is
// answered with 501 and named.
//
// Start with New; the requests are taken apart in Server.ServeHTTP.
package storage
