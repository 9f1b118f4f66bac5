// Package posts gives what modules post to the loggers of a run, each post once: also where it comes again, since its answer was
// lost or its step is made again.
//
// What it leaves out: how a logger writes, which is package experiment, and the actor that is called, which is package roles.
// Start with Poster.
package posts
