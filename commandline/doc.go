// Package commandline reads a command line as users of Terraform and kubectl write it: long
// flags with one dash, and errors that name the verb, the argument or the value that is
// meant. What the verbs do it does not know. Start with Strict and LongFlags.
package commandline
