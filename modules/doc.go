// Package modules gets the modules of a configuration that are archives: it
// chooses their versions, notes in a lock file what was chosen and what it
// holds, and unpacks them beside the configuration.
//
// A registry is a directory, of this machine or of a bucket, with an archive
// NAME-VERSION.tar.zst or NAME-VERSION.tar.gz for each version; it has no index
// and no server. What a version holds never changes: publishing is conditional,
// and the lock file .fray.lock.hcl has the SHA-256 of each archive and of the
// files in it. Installed archives are in .fray/.modules, a directory for each
// content, that appears whole or not at all.
//
// Only a [Getter] reads registries. Every other command uses [Installed], which
// asks no registry: it compares what is installed with the lock file. The package
// neither parses modules nor knows which ones a configuration calls: schema
// does, and asks through [schema.Installer]. It knows no cloud either; buckets
// are opened by what [Registries] is given. Start with Getter.
package modules
