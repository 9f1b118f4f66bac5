package tree

// SyncFileSystem syncs all of a tree.
func SyncFileSystem(path string) error { return disk().syncTree(path) }
