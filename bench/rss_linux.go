package main

// maxrssUnit is the unit of Rusage.Maxrss in bytes (getrusage(2): kilobytes).
const maxrssUnit = 1024
