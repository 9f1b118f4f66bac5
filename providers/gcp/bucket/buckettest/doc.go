// Package buckettest is a Cloud Storage for tests: an emulator behind real connections,
// which counts the requests and injects faults into them.
//
// It leaves out access control and signed addresses. Start with [New].
package buckettest
