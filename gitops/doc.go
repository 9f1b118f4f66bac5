// Package gitops is what a watch that follows a repository tells about its commits: which
// were merged since the last revision and by whom, and, to the forge, what became of each.
// It follows nothing and plans nothing: watch does. Start with [Reporter] and [Merged].
package gitops
