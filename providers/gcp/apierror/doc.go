// Package apierror reads the errors of Google's services, whichever way they came:
// over gRPC, over REST, or as the end of an operation. It turns them into the kinds
// that plan knows, and into what a user can do about them.
//
// It leaves out calling and retrying, and remedies that depend on what was asked for:
// package bucket and package kms have theirs and ask [Remedy] first. Start with
// [FindingOf] and [Wrap].
package apierror
