// Package release is what this program knows of itself: its version, its cache
// directory, and the file of the same release that hosts on Google Cloud start with,
// which it finds or compresses, keeps and uploads. It starts no host and downloads no
// other release. Start with Version and AgentBinary.
package release
