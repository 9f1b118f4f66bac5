// Package request decodes what programs ask for while a stack runs as if it stood in
// its files, so that both mean the same and have the same mistakes.
//
// It places nothing and knows limits only, not what the cloud has.
//
// Start with [Context.Job].
package request
