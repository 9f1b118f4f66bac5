package cron

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
)

func zoneOf(t interface{ Fatal(...any) }, name string) *time.Location {
	zone, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func timesOf(t interface{ Fatal(...any) }, expression, zone string) Times {
	times, err := Parse(expression, zoneOf(t, zone))
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func at(t interface{ Fatal(...any) }, text string) time.Time {
	found, err := time.Parse("2006-01-02 15:04:05 -0700", text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Times that clocks pass over do not occur that day; times that occur twice have a run each
// time, as in Kubernetes' CronJob.
func TestDaylightSaving(t *testing.T) {
	for _, test := range []struct{ name, expression, zone, after, want string }{
		{"skipped in spring", "30 2 * * *", "Europe/Zurich", "2026-03-28 12:00:00 +0100", "2026-03-30 02:30 +0200, 2026-03-31 02:30 +0200"},
		{"the hour after is not moved", "0 3 * * *", "Europe/Zurich", "2026-03-28 12:00:00 +0100", "2026-03-29 03:00 +0200, 2026-03-30 03:00 +0200"},
		{"twice in autumn", "30 2 * * *", "Europe/Zurich", "2026-10-24 12:00:00 +0200", "2026-10-25 02:30 +0200, 2026-10-25 02:30 +0100, 2026-10-26 02:30 +0100"},
		{"every half hour goes on", "*/30 * * * *", "Europe/Zurich", "2026-10-25 02:10:00 +0200", "2026-10-25 02:30 +0200, 2026-10-25 02:00 +0100, 2026-10-25 02:30 +0100, 2026-10-25 03:00 +0100"},
		{"half an hour of change", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 00:00:00 +1100", "2026-04-04 01:45 +1100, 2026-04-05 01:45 +1100, 2026-04-05 01:45 +1030, 2026-04-06 01:45 +1030"},
		{"midnight is skipped", "0 0 * * *", "America/Santiago", "2026-09-05 12:00:00 -0400", "2026-09-07 00:00 -0300"},
		{"no change in UTC", "30 2 * * *", "", "2026-03-28 12:00:00 +0000", "2026-03-29 02:30 +0000, 2026-03-30 02:30 +0000"},
		{"either day", "0 0 13 * FRI", "", "2026-02-12 00:00:00 +0000", "2026-02-13 00:00 +0000, 2026-02-20 00:00 +0000, 2026-02-27 00:00 +0000, 2026-03-06 00:00 +0000, 2026-03-13 00:00 +0000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			times := timesOf(t, test.expression, test.zone)
			var got []string
			for _, next := range times.Following(at(t, test.after), strings.Count(test.want, ",")+1) {
				got = append(got, next.In(zoneOf(t, test.zone)).Format("2006-01-02 15:04 -0700"))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %s\nwant %s", strings.Join(got, ", "), test.want)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for _, expression := range []string{"", "* * * *", "* * * * * *", "60 * * * *", "0 3 L * *", "TZ=", "CRON_TZ=UTC 0 3 * * *", "@every 1h", "@reboot", "0 0 * * 8", "a b c d e"} {
		if _, err := Parse(expression, time.UTC); err == nil {
			t.Errorf("%q was taken", expression)
		}
	}
	for _, zone := range []string{"Local", "local", "Europe/Zürich", "../etc/passwd"} {
		if _, err := Zone(zone); err == nil {
			t.Errorf("the zone %q was taken", zone)
		}
	}
}

// The next time is the first minute whose clock reads like the expression: minute after
// minute, which is slow and cannot be wrong.
func TestNextIsTheFirstMinuteThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute, hour := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 23).Draw(t, "hour")
		every := rapid.Bool().Draw(t, "every hour")
		expression := itoa(minute) + " " + itoa(hour) + " * * *"
		if every {
			expression = itoa(minute) + " * * * *"
		}
		name := rapid.SampledFrom([]string{"", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu", "Africa/Casablanca"}).Draw(t, "zone")
		zone := zoneOf(t, name)
		from := time.Date(2026, 1, 1, 0, rapid.IntRange(0, 400*24*60).Draw(t, "from"), rapid.IntRange(0, 59).Draw(t, "second"), 0, time.UTC)
		want := from.Truncate(time.Minute).Add(time.Minute)
		for ; ; want = want.Add(time.Minute) {
			if local := want.In(zone); local.Minute() == minute && (every || local.Hour() == hour) {
				break
			}
		}
		if got := timesOf(t, expression, name).Next(from); !got.Equal(want) {
			t.Fatalf("%s in %q after %v: got %v, want %v", expression, name, from, got.In(zone), want.In(zone))
		}
	})
}

func itoa(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }

// Ten years of minutes are searched at their end only.
func TestLatestOfALongDowntime(t *testing.T) {
	now := at(t, "2026-05-06 07:08:09 +0000")
	found, more := timesOf(t, "* * * * *", "").Latest(now.AddDate(-10, 0, 0), now, 3)
	if len(found) != 3 || !more || !found[2].Equal(now.Truncate(time.Minute)) {
		t.Errorf("got %v, %v", found, more)
	}
	found, more = timesOf(t, "0 0 29 2 *", "").Latest(now.AddDate(-10, 0, 0), now, 3)
	if len(found) != 2 || more || found[0].Year() != 2020 || found[1].Year() != 2024 {
		t.Errorf("leap days: %v, %v", found, more)
	}
}

type decideCase struct {
	name     string
	overlap  schema.Overlap
	missed   schema.Missed
	deadline time.Duration
	due, now string // minutes of an hour
	busy     bool
	queued   string
	want     string // queued runs, "!" when the present one is replaced, skipped ones, the next one
}

func TestDecide(t *testing.T) {
	for _, test := range []decideCase{
		{name: "not due", due: "10:00", now: "09:59", want: "[] next 10:00"},
		{name: "due", due: "10:00", now: "10:00", want: "[10:00] next 11:00"},
		{name: "a little late", due: "10:00", now: "10:01", want: "[10:00] next 11:00"},
		{name: "skip while one runs", due: "10:00", now: "10:00", busy: true, want: "[] overlap 10:00 next 11:00"},
		{name: "wait while one runs", overlap: schema.OverlapWait, due: "10:00", now: "10:00", busy: true, want: "[10:00] next 11:00"},
		{name: "one waits at most", overlap: schema.OverlapWait, due: "11:00", now: "11:00", busy: true, queued: "10:00", want: "[10:00] waiting 11:00 next 12:00"},
		{name: "replace", overlap: schema.OverlapReplace, due: "10:00", now: "10:00", busy: true, want: "[10:00]! next 11:00"},
		{name: "replace what is being replaced for", overlap: schema.OverlapReplace, due: "11:00", now: "11:00", busy: true, queued: "10:00", want: "[11:00]! overlap 10:00 next 12:00"},
		{name: "replace with none", overlap: schema.OverlapReplace, due: "10:00", now: "10:00", want: "[10:00] next 11:00"},
		{name: "missed: the last one", due: "10:00", now: "14:30", want: "[14:00] missed 10:00-13:00 next 15:00"},
		{name: "missed: the punctual one is the last", due: "10:00", now: "14:00", want: "[14:00] missed 10:00-13:00 next 15:00"},
		{name: "missed: none", missed: schema.MissedSkip, due: "10:00", now: "14:30", want: "[] missed 10:00-14:00 next 15:00"},
		{name: "missed: none but the punctual one", missed: schema.MissedSkip, due: "10:00", now: "14:00", want: "[14:00] missed 10:00-13:00 next 15:00"},
		{name: "missed: all", missed: schema.MissedAll, due: "10:00", now: "13:30", want: "[10:00 11:00 12:00 13:00] next 14:00"},
		{name: "missed: all within the deadline", missed: schema.MissedAll, deadline: 2 * time.Hour, due: "10:00", now: "13:30", want: "[12:00 13:00] deadline 10:00-11:00 next 14:00"},
		{name: "missed: the last one within the deadline", deadline: 10 * time.Minute, due: "10:00", now: "13:30", want: "[] deadline 10:00-13:00 next 14:00"},
		{name: "the clock goes back", due: "10:00", now: "03:00", want: "[] next 10:00"},
	} {
		t.Run(test.name, func(t *testing.T) { test.check(t) })
	}
}

func (c decideCase) check(t *testing.T) {
	clock := func(text string) time.Time { return at(t, "2026-06-01 "+text+":00 +0000") }
	s := &schema.Schedule{Overlap: c.overlap, Missed: c.missed, StartingDeadline: schema.Duration(c.deadline)}
	if s.Overlap == "" {
		s.Overlap = schema.OverlapSkip
	}
	if s.Missed == "" {
		s.Missed = schema.MissedOnce
	}
	m := Moment{Now: clock(c.now), Due: clock(c.due), Busy: c.busy}
	if c.queued != "" {
		m.Queued = []time.Time{clock(c.queued)}
	}
	queued := slices.Clone(m.Queued)
	d := Decide(s, timesOf(t, "0 * * * *", ""), m)
	if !slices.Equal(queued, m.Queued) {
		t.Error("what was queued is changed in place")
	}
	var runs []string
	for _, q := range d.Queued {
		runs = append(runs, q.Format("15:04"))
	}
	got := "[" + strings.Join(runs, " ") + "]"
	if d.Replace {
		got += "!"
	}
	for _, skip := range d.Skipped {
		got += " " + string(skip.Why) + " " + skip.First.Format("15:04")
		if skip.Runs != 1 {
			got += "-" + skip.Last.Format("15:04")
		}
	}
	if got += " next " + d.Due.Format("15:04"); got != c.want {
		t.Errorf("got %s\nwant %s", got, c.want)
	}
}

// A year without a controller has as many runs as are allowed, and the rest is counted as many.
func TestMissedRunsAreBounded(t *testing.T) {
	now := at(t, "2026-06-01 10:00:30 +0000")
	s := &schema.Schedule{Overlap: schema.OverlapSkip, Missed: schema.MissedAll}
	d := Decide(s, timesOf(t, "* * * * *", ""), Moment{Now: now, Due: now.AddDate(-1, 0, 0)})
	if n := len(d.Queued); n != MaxMissed {
		t.Errorf("%d runs begin", n)
	}
	if len(d.Skipped) == 0 || d.Skipped[0].Runs != 0 || d.Skipped[0].Why != schema.SkippedMissed {
		t.Errorf("skipped %+v", d.Skipped)
	}
}

// Whatever the steps, each time is decided about once: it is queued once or skipped once.
func TestEachTimeIsDecidedAboutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &schema.Schedule{
			Overlap: rapid.SampledFrom([]schema.Overlap{schema.OverlapSkip, schema.OverlapWait, schema.OverlapReplace}).Draw(t, "overlap"),
			Missed:  rapid.SampledFrom([]schema.Missed{schema.MissedSkip, schema.MissedOnce, schema.MissedAll}).Draw(t, "missed"),
		}
		times := timesOf(t, "*/7 * * * *", "Europe/Zurich")
		first := at(t, "2026-10-24 23:58:00 +0000")
		m := Moment{Now: first, Due: times.Next(first)}
		skipped, begun := 0, 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			m.Now = m.Now.Add(time.Duration(rapid.IntRange(-600, 3600).Draw(t, "seconds")) * time.Second)
			d := Decide(s, times, m)
			for _, skip := range d.Skipped {
				skipped += skip.Runs
			}
			m.Due, m.Queued = d.Due, d.Queued
			if m.Busy = rapid.Bool().Draw(t, "busy"); !m.Busy && len(m.Queued) > 0 {
				begun, m.Queued, m.Busy = begun+1, m.Queued[1:], true
			}
		}
		total := len(times.between(first, m.Due.Add(-time.Minute)))
		if got := begun + skipped + len(m.Queued); got != total {
			t.Fatalf("%d began, %d were skipped, %d wait: %d, and %d were due", begun, skipped, len(m.Queued), got, total)
		}
	})
}
