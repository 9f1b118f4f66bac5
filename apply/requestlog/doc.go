// Package requestlog records how much a store that costs money was asked for, by the leaders of a
// stack and by its hosts, in one object of the store. fray cost reads it. Start with [New].
package requestlog
