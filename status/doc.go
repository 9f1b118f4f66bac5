// Package status shows a stack: what runs, what waits and why, who leads. It reads the
// state, the reports of hosts and the lease, and shows them as text, as JSON and on a
// screen that is redrawn. It takes no lease and changes nothing. Start with Observer.
package status
