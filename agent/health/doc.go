// Package health judges a task by its health checks: what a check does ([Target]), and
// what follows from a row of results ([Monitor], which is without effects).
//
// It leaves out what becomes of an unhealthy task. Start with [Watch].
package health
