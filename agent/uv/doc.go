// Package uv builds Python environments with uv, once for all hosts of a machine, and
// installs uv where a machine lacks it.
//
// It leaves out the project itself, which tasks find through PYTHONPATH. Start with
// [Builder].
package uv
