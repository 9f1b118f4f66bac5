// Package lang is the language: the path from HCL files to specs, with ranged
// diagnostics.
//
// It composes the rooms below it: load parses files, configs checks their blocks and
// finds references, eval gives everything its value, decode makes specs of blocks, and
// lint warns. What it reads from the outside is what the files name: the files
// themselves and those of their modules, what the functions of files read, and whether
// a project directory is there. A Reader of eval reads data blocks, and an Installer of
// load finds modules that are archives; neither is implemented here.
//
// Start with [Parse] and [Source.Evaluate]; [Evaluation] is for values that become
// known later, and [Describe] for the language as a document.
package lang
