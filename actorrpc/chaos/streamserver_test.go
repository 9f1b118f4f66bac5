package chaos

import (
	"fmt"
	"iter"
	"strings"
	"time"
)

// Numbers counts as a call when it begins. Then it makes so many items: which incarnation ran it, its
// number there, the number of the item, and padding of so many bytes. Each is recorded before its caller can
// have it, and takes so many microseconds. A stream that fails does so after all of them.
func (c *counter) Numbers(caller string, seq, items, padding, takes int, fails bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := c.count(caller, seq); err != nil {
			yield("", err)
			return
		}
		made := item{caller: caller, seq: seq, life: c.life, count: c.n}
		for made.number < items {
			if takes > 0 {
				<-time.After(time.Duration(takes) * time.Microsecond)
			}
			made.number++
			if _, err := c.produced.WriteString(made.line()); err != nil {
				yield("", err)
				return
			}
			if !yield(fmt.Sprintf("%s %d %d %s", made.life, made.count, made.number, strings.Repeat("x", padding)), nil) {
				return
			}
		}
		if fails {
			yield("", flakyError{})
		}
	}
}

// Later is Numbers; in Python it is an asynchronous generator.
func (c *counter) Later(caller string, seq, items, padding, takes int, fails bool) iter.Seq2[string, error] {
	return c.Numbers(caller, seq, items, padding, takes, fails)
}
