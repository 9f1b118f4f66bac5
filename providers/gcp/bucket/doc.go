// Package bucket is the stack's store in a bucket of Cloud Storage.
//
// A [Bucket] writes by conditional uploads only, paces the writes of one object to
// what the service takes, retries what may pass, and settles by itself whether
// a write whose reply was lost has happened. It knows neither what the objects
// mean nor who may write them, and makes no bucket and turns no versioning on.
// Start with [Open].
package bucket
