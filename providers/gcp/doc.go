// Package gcp is the provider of slices on Google Cloud.
//
// [New] returns a [Provider], which implements providers.Provider on two of the
// cloud's APIs, the engines of packages tpu (Cloud TPU) and gce (Compute Engine). It
// keeps the creations below the project's limit, remembers which operations are open,
// and asks for them again. It decides nothing: it retries no creation, chooses no zone
// and forgets nothing that it could not read again. The owner and the spec of a slice
// stand on the slice itself, see package mark. Start with provider.go, and with package
// apierror for what the cloud's answers mean.
//
// It leaves out the store in a bucket, the key that wraps the stack's and the side of the
// machines: packages bucket, kms and host.
package gcp
