// Package check finds what cannot work in a project before anything is asked for:
// credentials, APIs, permissions, zones, types, quotas, networks, accounts, disks and the
// location of the bucket.
//
// It changes nothing, and counts as good what these credentials may not read. Start with
// [Problems].
package check
