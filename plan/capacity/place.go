package capacity

// Rejections is how often a slice may be refused in a row before what waits for
// it lets go of the rest, so that two groups cannot hold half of a place each.
const Rejections = 3
