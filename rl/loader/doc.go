// Package loader is the state machine of a data loader: which task is next, who has leased it, and when the
// next batch may begin.
//
// It knows items by their index; package source has their content, package roles hosts both as an actor. It has
// no clock, no lock and no I/O, and what is random comes of a seed. Start with Loader.
package loader
