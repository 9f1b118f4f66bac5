// Package record keeps small values in files that are whole after a crash or a power
// cut. A record ([Reserve], [Write], [Read]) can be written on a full disk, since its
// blocks are allocated beforehand; a JSON file ([WriteJSON]) is replaced by a new one.
//
// It leaves out which records there are; see package hostdir.
package record
