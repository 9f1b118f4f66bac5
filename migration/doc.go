// Package migration moves a stack to another store: it copies, compares, leaves a note at
// the old place, and brings the agents along. Opening either side is stack's. Start with
// Migration.Run.
package migration
