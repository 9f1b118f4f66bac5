package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/profile"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// hostileProfile is a profile of a host that tries to act in a browser.
const hostileProfile = `{"shared":{"frames":[{"name":"</title><script>alert(1)</script>","file":"a\u0000\u001b[31m.py","line":3},{"name":"busy & <b>"}]},
"profiles":[{"unit":"seconds","samples":[[0],[0,1]],"weights":[1,3]}]}`

// profiled is a page whose first job has profiles, with their names.
func profiled(t *testing.T, snap *Snapshot) (*Server, string, []store.ProfileName) {
	t.Helper()
	stored := storetest.NewMemory()
	var job string
	for _, j := range snap.Doc.Jobs {
		if job == "" || j.ID < job {
			job = j.ID
		}
	}
	var names []store.ProfileName
	for i, of := range []struct {
		header profile.Header
		data   string
	}{
		{profile.Header{Kind: profile.CPU, Format: profile.Speedscope}, hostileProfile},
		{profile.Header{Kind: profile.Stacks, Format: profile.PlainText}, "<script>alert(1)</script>"},
	} {
		name := store.NewProfileName(1, 0, testTime.Add(time.Duration(i)*time.Second), of.header)
		if err := store.KeepProfile(t.Context(), stored, job, name, []byte(of.data)); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	s := pageOf(t, nil, func(c *Config) { c.Source, c.Profiles = newSource(snap), StoredProfiles{Store: stored} })
	return s, job, names
}

// TestProfilesAreListedAndInert: the newest is first, and nothing of a profile acts in a browser.
func TestProfilesAreListedAndInert(t *testing.T) {
	t.Parallel()
	s, job, names := profiled(t, makeUp(20, testTime))
	base := "/api/v1/jobs/" + job + "/profiles"
	list := ask(s, base, nil)
	if first, second := strings.Index(list.Body.String(), names[1].String()), strings.Index(list.Body.String(), names[0].String()); list.Code != http.StatusOK || first < 0 || second < first {
		t.Errorf("got %d, %s", list.Code, list.Body)
	}
	flame := ask(s, base+"/"+names[0].String()+"/flame", nil)
	if body := flame.Body.String(); flame.Code != http.StatusOK || strings.Contains(body, "<script") || strings.ContainsAny(body, "\x00\x1b") || !strings.Contains(body, "busy &amp; &lt;b&gt;: 3.00 s, 75.0%") {
		t.Errorf("the flame graph: %d, %s", flame.Code, body)
	}
	for _, name := range names {
		got := ask(s, base+"/"+name.String(), nil)
		if got.Code != http.StatusOK || !strings.Contains(got.Header().Get("Content-Security-Policy"), "sandbox") || strings.Contains(got.Header().Get("Content-Type"), "html") {
			t.Errorf("%s: %d, %v", name, got.Code, got.Header())
		}
	}
	for _, path := range []string{base + "/" + names[1].String() + "/flame", base + "/..%2f..%2fstate.json", base + "/x", "/api/v1/jobs/none/profiles",
		base + "/" + store.NewProfileName(1, 0, testTime, profile.Header{Kind: profile.CPU, Format: profile.Pprof}).String()} {
		if got := ask(s, path, nil); got.Code < 400 || got.Code >= 500 {
			t.Errorf("%s: %d, %s", path, got.Code, got.Body)
		}
	}
}

// TestProfilesInABrowser: the page lists them with links to their flame graphs, and its console stays empty.
func TestProfilesInABrowser(t *testing.T) {
	s, job, _ := profiled(t, makeUp(20, time.Now()))
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ran })
	b := openBrowser(t, s)
	b.open("#/jobs/" + job)
	b.await("the list of profiles", `document.querySelectorAll("a[href$='/flame']").length === 1 && document.body.innerText.includes("speedscope")`)
	b.open(b.text(`document.querySelector("a[href$='/flame']").getAttribute("href")`))
	b.await("the flame graph", `document.documentElement.tagName === "svg" && document.documentElement.textContent.includes("busy & <b>")`)
	for _, text := range b.said() {
		t.Errorf("the console says %s", text)
	}
}
