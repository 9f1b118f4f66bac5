package stack

// Copiers is how many objects of a store are read or copied at a time.
const Copiers = 16
