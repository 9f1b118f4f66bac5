// Package funcs has the functions that expressions may call, under the names that
// Terraform gives them, with their descriptions and the limits of what they may make.
//
// There is no clock, no randomness and no network among them: equal files give equal
// plans. No function loses a mark, and no error repeats what is secret.
//
// Start with [In], and function.go for what all of them have in common.
package funcs
