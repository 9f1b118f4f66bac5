// Package as converts values of the language to what specs hold: as.Bytes, as.Duration,
// as.OneOf. An error has what to write instead.
//
// It takes values that are known, not null and not marked. It does not evaluate, and it
// reports nothing.
//
// Start with [Converter].
package as
