// Package gce makes slices of machines of Compute Engine: one instance, or a managed
// instance group with its template and its workload policy.
//
// It decides nothing and keeps only notes that may be lost. It leaves out the limits on
// creations and what is asked for again, which the provider has. Start with [Engine],
// then create.go, list.go and status.go. An Engine is composed of api (the calls) and
// progress (the notes), which do not know each other.
package gce
