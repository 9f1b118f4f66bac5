package config

import "slices"

// Kind is what the value of a key is.
type Kind string

// The kinds of values.
const (
	Text    Kind = "string"
	File    Kind = "path"           // of a file or directory that every host of the run sees
	Place   Kind = "path or bucket" // a path as File, or gs://BUCKET/PREFIX
	Whole   Kind = "whole number"
	Number  Kind = "number"
	Seconds Kind = "seconds"
	Flag    Kind = "bool"
	Texts   Kind = "list of strings"
	Words   Kind = "one or several of" // a word or a list of words
	Word    Kind = "one of"
	Class   Kind = "one of, or a class" // a word, or "module:Class" of a Python class
	Any     Kind = "map"
)

// Key is one key of the configuration.
type Key struct {
	Path    string // "data.batch_size"
	Kind    Kind
	Default any      // nil: none
	Words   []string // of Word, Words and Class
	// Low and High bound Whole, Number and Seconds; a High of 0 is no bound. Above says that Low itself is too low.
	Low, High float64
	Above     bool
	Meaning   string
}

// keys joins the keys of all sections.
func keys() []Key {
	return slices.Concat(runKeys(), loaderKeys("data"), rolloutKeys(), trajectoryKeys(), algorithmKeys(), trainKeys(), weightKeys(),
		serviceKeys(), validateKeys(), monitorKeys(), roleKeys())
}

// Keys are all keys, section by section. A path with a star stands for every role: "roles.*.count".
func Keys() []Key { return keys() }
