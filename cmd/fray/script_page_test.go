package main

import (
	"net/http"
	"net/http/cookiejar"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

var pageAddress = regexp.MustCompile(`Page: (http://127\.0\.0\.1:\d+/)\?token=(\S+)`)

// guarded checks that the page which stdout names answers with its token, and to no others.
func guarded(ts *testscript.TestScript, _ bool, _ []string) {
	found := pageAddress.FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("stdout names no page")
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	client := &http.Client{Jar: jar}
	for _, asked := range []struct {
		url  string
		want int
	}{
		{found[1] + "api/v1/overview", http.StatusUnauthorized}, {found[1] + "metrics", http.StatusUnauthorized}, {found[1] + "?token=WRONG", http.StatusUnauthorized},
		{found[1] + "?token=" + found[2], http.StatusOK}, {found[1] + "api/v1/overview", http.StatusOK}, // by the cookie now
	} {
		response, err := client.Get(asked.url)
		ts.Check(err)
		ts.Check(response.Body.Close())
		if response.StatusCode != asked.want {
			ts.Fatalf("%s: status %d, want %d", asked.url, response.StatusCode, asked.want)
		}
	}
}
