// Package resolver finds actors by name: at addresses that are fixed, in this process, or in a
// cluster whose controller keeps a registry of them. It leaves out calling them, which is package
// actorrpc. Start with [Resolver].
package resolver
