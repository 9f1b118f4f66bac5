// Package config is the configuration of a reinforcement learning run: every key with its type, default and meaning,
// the document as a Go value, and the check of a document.
//
// One JSON document holds it. The HCL module nexrl renders it, "fray rl --config" and the Python package read it.
// Keys is the list of all keys: the check, the defaults, the table in docs/guides/nexrl.md and the tests of the module
// follow from it.
//
// It leaves out files and processes: whether paths exist is checked by the module, where a plan is made. Start with Read.
package config
