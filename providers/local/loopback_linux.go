package local

// ownLoopback states that all of 127.0.0.0/8 can be bound without setting it up.
const ownLoopback = true

// checkAddress is a loopback address that no host has: a port that is taken on
// it is taken on all of them.
const checkAddress = "127.0.255.254"
