package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// manyInABrowser is how many jobs the stack of TestLargeStackInABrowser has. Of 100,000, which have
// 270,000 hosts, the pages look the same and take the same time in the browser; the test takes a minute.
const manyInABrowser = 10_000

// scrolls scrolls through a page for 60 frames, and sums up what they took.
const scrolls = `new Promise((done) => {
	const height = document.documentElement.scrollHeight - innerHeight;
	let n = 0, last = performance.now(), worst = 0, most = 0;
	const step = (now) => {
		worst = Math.max(worst, now - last); last = now;
		most = Math.max(most, document.querySelectorAll("main *").length);
		if (++n > 60) { window.worst = worst; window.most = most; return done(true); }
		scrollTo(0, height * ((n * 37) % 60) / 60);
		requestAnimationFrame(step);
	};
	requestAnimationFrame(step);
})`

// Of a large stack a page holds what is seen, and loads no more, also while it is scrolled and the
// stack moves on.
func TestLargeStackInABrowser(t *testing.T) {
	snap := makeUp(manyInABrowser, time.Now())
	s, from := live(t, snap, &memory{})
	b := openBrowser(t, s)
	for _, part := range []struct {
		hash, there string
		elements    int
	}{
		{"#/jobs", `document.querySelectorAll(".vlist .row").length > 10`, 1500},
		{"#/slices", `document.querySelectorAll(".vlist .row").length > 5 && document.querySelectorAll(".zone .bar").length === 4`, 1500},
		{"#/", `document.querySelectorAll(".card .rows li").length > 5`, 600},
	} {
		b.open(part.hash)
		b.await(part.hash, part.there)
		next := *snap
		next.Doc = snap.Doc.Clone()
		next.Doc.Serial++
		from.put(&next)
		b.await("frames", scrolls)
		b.await("rows where it was scrolled to", part.there)
		worst, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`Math.round(window.worst) + " ms between two frames at most, " + window.most + " elements, " + Math.round(performance.getEntriesByType("resource").reduce((n, r) => n + r.decodedBodySize, 0) / 1000) + " kB"`))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", part.hash, worst)
		b.await(fmt.Sprintf("at most %d elements", part.elements), fmt.Sprintf("window.most < %d", part.elements))
		b.await("a few rows each", `performance.getEntriesByType("resource").filter((r) => r.name.includes("/api/")).every((r) => r.decodedBodySize < 100000)`)
	}
	// Chromium drops requests when an interface of the machine comes or goes; the lists ask again.
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}
