// Package configuration turns files, variables and a workspace into an evaluated
// configuration with its stack: it parses, asks for missing variables, reads data
// blocks, checks, seals, and packs projects. Verbs that need the state alone use Locate.
// It makes no plan and changes nothing. Start with Load.
package configuration
