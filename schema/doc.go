// Package schema is fray's vocabulary and its language: addresses, typed specs
// with canonical digests, accelerator shapes, and the path from HCL files to a
// [Config] with ranged diagnostics.
//
// It knows no state, no cloud and no clock. What it reads from the outside is
// what the files name: the files themselves, file() and templatefile(), and
// whether a project directory is there.
//
// Start with [Parse] and [Source.Evaluate] for the language, [Config] and [Job]
// for the specs, and [Address] for names.
package schema
