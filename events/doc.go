// Package events prints the events of a stack, filtered, as text and as JSON. It follows
// no logs. Start with Print.
package events
