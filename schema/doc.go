// Package schema is fray's vocabulary and its language: addresses, typed specs
// with canonical digests, accelerator shapes, and the path from HCL files to a
// [Config] with ranged diagnostics.
//
// It knows no state, no cloud and no clock. What it reads from the outside is
// what the files name: the files themselves and those of their modules, what the
// functions of files read, and whether a project directory is there. What data
// blocks name is read by a [Reader], and modules that are archives are found by
// an [Installer]; neither is implemented here.
//
// Start with [Parse] and [Source.Evaluate] for the language, node.go for the
// order in which things get their values, [Evaluation] for what becomes known
// later, [Config] and [Job] for the specs, and [Address] for names.
package schema
