package workspace

import "time"

// unchecked is since when edits wait for a check of everything. They wait at most for the time of
// [Options.Patience]; for any time, if that is 0.
type unchecked struct {
	oldest time.Time // the first that no check has covered which ended; zero: there is none
	later  time.Time // the first after the running check began; zero: there is none
}

// add notes an edit.
func (u *unchecked) add(now time.Time) {
	if u.oldest.IsZero() {
		u.oldest = now
	}
	if u.later.IsZero() {
		u.later = now
	}
}

// begin notes that a check begins, which covers all edits so far.
func (u *unchecked) begin() { u.later = time.Time{} }

// end notes that the check has ended, and was not canceled.
func (u *unchecked) end() { u.oldest = u.later }

// behind reports whether there are edits since the check began.
func (u *unchecked) behind() bool { return !u.later.IsZero() }

// overdue reports whether an edit has waited for its check as long as it may.
func (u *unchecked) overdue(now time.Time, most time.Duration) bool {
	return most > 0 && !u.oldest.IsZero() && now.Sub(u.oldest) >= most
}

// wait is how long a check is put off: for a pause, and never beyond the time at which it is overdue.
func (u *unchecked) wait(now time.Time, pause, most time.Duration) time.Duration {
	if most == 0 || u.oldest.IsZero() {
		return pause
	}
	return max(0, min(pause, u.oldest.Add(most).Sub(now)))
}
