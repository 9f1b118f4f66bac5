// Package terminaltest gives tests a terminal of the kernel, with a keyboard that
// they type on and a screen that they read. It starts no program. Start with Open.
package terminaltest
