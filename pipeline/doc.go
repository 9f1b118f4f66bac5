// Package pipeline runs fray as a job of CI: it reads where the job runs and for which
// commit, checks and plans a configuration, applies a reviewed plan, looks for drift, and
// writes what comes of it to the job's files and to the forge. What is written is decided
// by review. Start with Detect and Planner.
package pipeline
