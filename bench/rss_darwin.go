package main

// maxrssUnit is the unit of Rusage.Maxrss in bytes (getrusage(2): bytes).
const maxrssUnit = 1
