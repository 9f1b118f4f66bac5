// Package show writes values and types for people, values as expressions of the
// language.
//
// It shows no sensitive value.
//
// Start with [Value].
package show
