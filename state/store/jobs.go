package store

import "fmt"

// JobsPrefix is of what is recorded of jobs beside the state.
const JobsPrefix = "jobs/"

// JobsKey is the n-th object of records that the holder of an epoch writes.
// Later ones go before earlier ones, in the order of their keys.
func JobsKey(epoch uint64, n int) string {
	return fmt.Sprintf("%s%012d-%08d.json", JobsPrefix, epoch, n)
}
