// Package tree makes directories that are trusted later by their name, such as a
// bundle, a Python environment or an installed program: they are synced before they get
// the name, and checked when they are found.
//
// It leaves out what is in them. Start with [Place] and [Intact].
package tree
