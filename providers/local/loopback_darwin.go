package local

// ownLoopback states that only 127.0.0.1 can be bound without setting others up.
const ownLoopback = false

// checkAddress is where every host's ports are.
const checkAddress = "127.0.0.1"
