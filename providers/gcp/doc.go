// Package gcp reaches Google Cloud. So far that is the stack's store in a
// Cloud Storage bucket: [OpenBucket] returns a [Bucket], which implements
// store.Store; and a key of Cloud KMS that wraps the stack's: [OpenKMS] returns
// a [KMS], which implements keyring.KMS.
//
// A Bucket writes by conditional uploads only, paces the writes of one object to
// what the service takes, retries what may pass, and settles by itself whether
// a write whose reply was lost has happened. It knows neither what the objects
// mean nor who may write them, and makes no bucket and turns no versioning on.
package gcp
