package hosts

// ownLoopback states that all of 127.0.0.0/8 can be bound without setting it up.
const ownLoopback = true
