// Package lsp serves the Language Server Protocol over a pair of streams: it takes the edits
// of an editor, publishes diagnostics, and answers at places of files.
//
// What is wrong with files is found by lsp/workspace, what stands at a place by lang/query.
//
// Start with [Serve].
package lsp
