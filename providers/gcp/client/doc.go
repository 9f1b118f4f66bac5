// Package client is the way to Google's services: transports with application default
// credentials, requests that end when they stall, and retries at the pace that the
// services take.
//
// It leaves out what a call means, and whether a write whose reply was lost has
// happened. Start with [Pace].
package client
