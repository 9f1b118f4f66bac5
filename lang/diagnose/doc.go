// Package diagnose collects diagnostics of configurations, each place and summary once,
// and has the phrases that they share.
//
// It knows what rooms above it must distinguish of a diagnostic later: causes, failed
// conditions, variables without a value. It prints nothing.
//
// Start with [Report].
package diagnose
