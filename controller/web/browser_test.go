package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// browser is a headless Chromium with one tab, which remembers what its console said.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string
}

// openBrowser starts Chromium, or skips the test where there is none.
func openBrowser(t *testing.T, s *Server) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium on this machine: the page is not tried in a browser (install the package chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 { // it refuses to sandbox itself for root
		options = append(options, chromedp.NoSandbox)
	}
	// Not the test's context: that ends before the browser is told to.
	timeout, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	alloc, stop := chromedp.NewExecAllocator(timeout, options...)
	ctx, closeTab := chromedp.NewContext(alloc)
	server := httptest.NewServer(s)
	b := &browser{t: t, ctx: ctx, url: server.URL}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end the browser: %v", err)
		}
		closeTab()
		stop()
		cancel()
		server.CloseClientConnections()
		server.Close()
	})
	b.do(chromedp.EmulateViewport(1280, 900))
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.problems = append(b.problems, string(m.Type)+": "+m.Text+" ("+m.URL+")")
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// run runs a statement in the page.
func (b *browser) run(statement string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](statement+"; true")); err != nil {
		b.t.Fatal(err)
	}
}

// text evaluates an expression in the page.
func (b *browser) text(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// open goes to a part of the page, or to another document by its path, and returns when it is
// loaded. A script that sets location.href returns earlier: what it asks next meets a document
// that goes away.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + "/" + strings.TrimPrefix(path, "/")))
	for b.interrupted() {
		b.do(chromedp.Reload())
	}
}

// interrupted reports whether the browser has given up loading something since it was asked last
// because addresses of this machine changed: tests of other packages make networks.
func (b *browser) interrupted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.problems)
	b.problems = slices.DeleteFunc(b.problems, func(line string) bool { return strings.Contains(line, "ERR_NETWORK_CHANGED") })
	return len(b.problems) < n
}

// await waits until an expression holds.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(time.Minute)))
	if err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%s: %v\nthe page says:\n%s\nthe console says: %q", what, err, text, b.said())
	}
}

// said is what the console says, but for loads that are interrupted and tried again.
func (b *browser) said() []string {
	b.interrupted()
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.problems...)
}

// live is a page over a source that the test moves on.
func live(t *testing.T, snap *Snapshot, logs Logs) (*Server, *source) {
	t.Helper()
	from := newSource(snap)
	s := pageOf(t, nil, func(c *Config) { c.Source, c.Logs, c.Pace, c.Now = from, logs, 20*time.Millisecond, time.Now })
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ran })
	return s, from
}

func TestEveryPartLoadsWithoutErrors(t *testing.T) {
	snap := makeUp(300, time.Now())
	s, _ := live(t, snap, &memory{})
	b := openBrowser(t, s)
	job := ""
	for _, j := range snap.Doc.Jobs {
		if len(j.Attempts) > 2 {
			job = j.ID
		}
	}
	for hash, holds := range map[string]string{
		"#/":             `document.querySelector(".number")?.textContent === "300" && document.querySelectorAll(".card .rows li").length > 5`,
		"#/jobs":         `document.querySelectorAll(".vlist .row").length > 10`,
		"#/jobs/" + job:  `document.querySelectorAll(".attempts li").length > 2 && document.querySelector(".track .span").getBoundingClientRect().width > 5`,
		"#/slices":       `document.querySelectorAll(".cell").length > 100`,
		"#/reservations": `document.querySelectorAll(".pool").length === 2`,
		"#/shares":       `document.querySelectorAll("table.shares tbody tr").length > 4`,
		"#/events":       `document.querySelector("h1")?.textContent === "Events"`,
		"#/graph":        `document.querySelector("h1")?.textContent === "Dependencies"`,
	} {
		b.open(hash)
		b.await(hash, holds)
		for _, width := range []int64{400, 1280} {
			b.do(chromedp.EmulateViewport(width, 900))
			b.await(hash+": nothing is wider than the page", `document.documentElement.scrollWidth <= innerWidth`)
		}
	}
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

// TestUpdatesLeaveNoErrors moves the stack on under each part of the page: what the browser
// forbids, or what fails, is in its console.
func TestUpdatesLeaveNoErrors(t *testing.T) {
	snap := makeUp(300, time.Now())
	s, from := live(t, snap, &memory{})
	b := openBrowser(t, s)
	job := ""
	for _, j := range snap.Doc.Jobs {
		if len(j.Attempts) > 2 && j.Attempts[len(j.Attempts)-1].Outcome == "" {
			job = j.ID
		}
	}
	version := func(n int) string { return fmt.Sprintf(`document.querySelector("#nav").dataset.version >= %d`, n) }
	n := 1
	for _, hash := range []string{"#/", "#/jobs", "#/jobs/" + job, "#/slices", "#/reservations", "#/shares", "#/events", "#/graph"} {
		b.open(hash)
		b.await(hash, `document.querySelector("main").innerText.length > 20`)
		for range 2 {
			n++
			next := makeUp(300+n, time.Now())
			next.Doc.Jobs[snap.Doc.Jobs[addressOf(snap, job)].Spec.Addr] = snap.Doc.Jobs[addressOf(snap, job)]
			from.put(next)
			b.await(hash+" follows", version(n))
		}
		b.await("all of "+hash+" is drawn", `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	}
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

func addressOf(snap *Snapshot, id string) schema.Address {
	for addr, j := range snap.Doc.Jobs {
		if j.ID == id {
			return addr
		}
	}
	return schema.Address{}
}

// A picture of what depends on what, whose nodes lead to the jobs.
func TestGraphInABrowser(t *testing.T) {
	s, _ := live(t, declared(), &memory{})
	b := openBrowser(t, s)
	b.open("#/graph")
	b.await("boxes and arrows", `document.querySelectorAll(".graph .node").length > 1 && document.querySelectorAll(".graph .edge").length > 0`)
	b.await("no box covers another one", `[...document.querySelectorAll(".node rect")].every((a, i, all) => all.slice(i + 1).every((b) => {
		const p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
		return p.right <= q.left || q.right <= p.left || p.bottom <= q.top || q.bottom <= p.top;
	}))`)
	b.await("names that can be heard", `[...document.querySelectorAll(".node")].every((a) => a.getAttribute("aria-label").length > 3)`)
	b.do(chromedp.Focus(`.node[href^="#/jobs/id-"]`), chromedp.KeyEvent(kb.Enter))
	b.await("the page of a job", `document.querySelector(".jobhead .badge") !== null`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

func TestAnEmptyStackInABrowser(t *testing.T) {
	s, _ := live(t, makeUp(0, time.Now()), &memory{})
	b := openBrowser(t, s)
	b.open("#/")
	b.await("each part says that there is nothing", `document.body.innerText.includes("Nothing has failed") && ![...document.querySelectorAll(".card")].some((card) => card.innerText === "")`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

func TestFilterInABrowser(t *testing.T) {
	s, _ := live(t, makeUp(300, time.Now()), &memory{})
	b := openBrowser(t, s)
	b.open("#/jobs")
	b.await("all jobs", `document.querySelector(".summary")?.textContent === "300 jobs"`)
	b.do(chromedp.KeyEvent("/"))
	b.await("the field for filters has the focus", `document.activeElement.type === "search"`)
	b.run(`document.activeElement.value = ""`) // a key's text comes by itself here
	b.do(chromedp.KeyEvent("train[24"))
	b.await("the filtered jobs", `/^\d of 300 jobs$/.test(document.querySelector(".summary").textContent)
		&& [...document.querySelectorAll(".vlist .row a")].every((a) => a.title.includes("train[24"))`)
	b.await("the filter is in the address", `location.hash === "#/jobs?q=train%5B24"`)
	b.do(chromedp.KeyEvent(strings.Repeat(kb.Backspace, len("train[24"))), chromedp.Click(`button[data-status="failed"]`))
	b.await("failed jobs", `document.querySelector(".summary").textContent === "25 of 300 jobs"
		&& [...document.querySelectorAll(".vlist .row:not(.context) .badge")].every((x) => x.textContent === "failed")`)
	b.do(chromedp.Focus(".vlist .row a"))
	b.run(`window.first = document.activeElement.closest("[data-key]").dataset.key`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.await("the next row", `document.activeElement.closest("[data-key]")?.dataset.key !== window.first`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the page of a job", `document.querySelector(".jobhead .badge")?.textContent === "failed"`)
}

// TestManyJobsInABrowser: of 10,000 rows only those are there that are seen.
func TestManyJobsInABrowser(t *testing.T) {
	s, _ := live(t, makeUp(10_000, time.Now()), &memory{})
	b := openBrowser(t, s)
	b.open("#/jobs")
	b.await("the first rows", `document.querySelector(".summary")?.textContent === "10,000 jobs" && document.querySelectorAll(".vlist .row").length > 10`)
	b.await("all of their height", `document.querySelector(".vlist").getBoundingClientRect().height === 460000`)
	b.run(`scrollTo(0, 300000)`)
	b.await("rows in the middle", `[...document.querySelectorAll(".vlist .row")].some((r) => Math.abs(r.getBoundingClientRect().top - 400) < 50)`)
	b.await("few rows", `document.querySelectorAll(".vlist .row").length < 60`)
}

func TestLiveInABrowser(t *testing.T) {
	snap, wrote := running(), &memory{}
	for _, j := range snap.Doc.Jobs {
		for i := range j.Attempts {
			j.Attempts[i].StartedAt = time.Now().Add(-time.Minute)
		}
	}
	s, from := live(t, snap, wrote)
	b := openBrowser(t, s)
	b.open("#/jobs/id-root")
	b.await("it runs", `document.querySelector(".jobhead .badge")?.textContent === "running"`)
	wrote.write(task(2, 1), "loss 0.25 <b>not bold</b>\n")
	b.await("a line appears", `document.querySelector(".log div")?.lastChild.textContent === "loss 0.25 <b>not bold</b>" && document.querySelector(".log b").textContent === "1 "`)
	b.await("with its time", fmt.Sprintf(`document.querySelector(".log time").dateTime === %q && document.querySelector(".log time").getBoundingClientRect().width > 50`, testTime.Format("2006-01-02T15:04:05.000Z")))
	wrote.write(task(2, 0), "\x1b[31mred\x1b[0m\n")
	b.await("another one, without its colours", `document.querySelector(".log").lastChild.lastChild.textContent === "red"`)
	wrote.writeAt(task(2, 0), "late\n", testTime.Add(time.Hour))
	b.await("a later line", `document.querySelector(".log").lastChild.lastChild.textContent === "late"`)
	wrote.writeAt(task(2, 1), "early\n", testTime.Add(time.Minute))
	b.await("a line that comes late stands where it belongs", `[...document.querySelectorAll(".log div")].slice(-2).map((row) => row.lastChild.textContent).join() === "early,late"`)
	b.do(chromedp.Click(".logs label:last-of-type input"))
	b.await("without times", `document.querySelector(".log time").getBoundingClientRect().width === 0`)

	after := ended(snap)
	for addr, j := range after.Doc.Jobs {
		if j.ID == "id-root" {
			changed := *j
			changed.Status, changed.Reason = schema.JobFailed, "task 0 exited with code 1"
			changed.Attempts = append([]state.Attempt{}, j.Attempts...)
			changed.Attempts[1].EndedAt = time.Now()
			after.Doc.Jobs[addr] = &changed
		}
	}
	from.put(after)
	b.await("it has failed", `document.querySelector(".jobhead .badge").textContent === "failed" && document.querySelector(".jobhead .why").textContent === "task 0 exited with code 1"`)
	b.await("its log stays and ends", `document.querySelectorAll(".log div").length === 4 && document.querySelector(".logs [role=status]").textContent === "ended"`)
	b.open("#/events")
	b.await("it is an event", `document.querySelector(".events")?.textContent.includes("job.root failed: task 0 exited with code 1")`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", strings.Join(said, "\n"))
	}
}

// The banner says which provider cannot be seen, since when and why, what its list skips
// and how much is missing from it, and goes when all is well.
func TestBlindProviderInABrowser(t *testing.T) {
	s, from := live(t, blind(), &memory{})
	b := openBrowser(t, s)
	b.open("")
	for _, want := range []string{
		"Provider gcp cannot be seen since ", ": 401 no credentials.", "4 of 5 slices are missing from the list of provider gcp",
		"copied in us-west4-a is skipped: it is a copy of a.",
	} {
		b.await(want, fmt.Sprintf(`!document.getElementById("banner").hidden && document.getElementById("banner").textContent.includes(%q)`, want))
	}
	from.put(family())
	b.await("it goes", `document.getElementById("banner").hidden`)
}
