package hosts

// ownLoopback is false: only 127.0.0.1 can be bound, and machines share it.
const ownLoopback = false
