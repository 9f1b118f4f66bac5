// Package gcp reaches Google Cloud: for slices of TPUs and machines, for the
// stack's store in a bucket, and for a key that wraps the stack's.
//
// [New] returns a [Provider], which implements providers.Provider on two of the
// cloud's APIs, the engines tpu (Cloud TPU: nodes and queued resources) and gce
// (Compute Engine). It decides nothing: it retries no creation, chooses no zone
// and forgets nothing that it could not look up again. Whose a slice is and what
// was asked for stands on the slice itself, see record.go. Start with
// provider.go, and with clouderror.go for what the cloud's answers mean.
//
// [OpenBucket] returns a [Bucket], which implements store.Store. [OpenKMS]
// returns a [KMS], a key of Cloud KMS, which implements keyring.KMS.
//
// A Bucket writes by conditional uploads only, paces the writes of one object to
// what the service takes, retries what may pass, and settles by itself whether
// a write whose reply was lost has happened. It knows neither what the objects
// mean nor who may write them, and makes no bucket and turns no versioning on.
package gcp
