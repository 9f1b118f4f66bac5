package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
)

// TestNoticesGuide has the receivers of the guide, in Python and in Go, verify what fray sends, and
// reject what another sender does; and it validates the configuration of the guide.
func TestNoticesGuide(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "notices.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		t.Helper()
		_, rest, found := strings.Cut(string(data), "```"+language+"\n")
		text, _, closed := strings.Cut(rest, "```\n")
		if !found || !closed {
			t.Fatalf("the guide has no block of %s", language)
		}
		return text
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	src, diags := lang.Parse([]string{filepath.Dir(write("config/fray.hcl", block("hcl")))})
	if !diags.HasErrors() {
		_, diags = src.Evaluate(eval.Options{Partial: true})
	}
	if diags.HasErrors() {
		t.Errorf("the guide's configuration: %v", diags)
	}

	const secret = "correct horse"
	var body []byte
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		header = r.Header
	}))
	t.Cleanup(server.Close)
	n := &schema.Notification{
		Addr:    schema.Address{Kind: schema.KindNotification, Name: "team"},
		Webhook: &schema.WebhookReceiver{URL: schema.Secret(server.URL), Secret: schema.Secret(secret)},
	}
	sender := notices.NewSender(func(t schema.Text) (string, error) { return t.Reveal(nil) }, 0, 0)
	if failure := sender.Send(t.Context(), n, notice.Test("test-1", n, "stack", "default", time.Now()), schema.ReceiverWebhook); failure != nil {
		t.Fatal(failure)
	}
	bodyFile := write("body", string(body))
	check := func(t *testing.T, run func(secret, body string) *exec.Cmd) {
		for _, test := range []struct{ name, secret, body, want string }{
			{"as it was sent", secret, bodyFile, "true"},
			{"with another secret", "battery staple", bodyFile, "false"},
			{"with another body", secret, write("forged", string(body)+" "), "false"},
		} {
			out, err := run(test.secret, test.body).CombinedOutput()
			if got := strings.ToLower(strings.TrimSpace(string(out))); err != nil || got != test.want {
				t.Errorf("%s: got %q, %v, want %s", test.name, got, err, test.want)
			}
		}
	}
	t.Run("python", func(t *testing.T) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("no Python here")
		}
		program := write("verify.py", block("python")+`
import sys
headers = {"webhook-id": sys.argv[3], "webhook-timestamp": sys.argv[4], "webhook-signature": sys.argv[5]}
print(verify(sys.argv[1].encode(), headers, open(sys.argv[2], "rb").read()))
`)
		check(t, func(secret, body string) *exec.Cmd {
			return exec.Command("python3", program, secret, body, header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature"))
		})
	})
	t.Run("go", func(t *testing.T) {
		write("go.mod", "module guide\n\ngo 1.25\n")
		write("receiver/receiver.go", block("go"))
		write("main.go", `package main

import (
	"fmt"
	"net/http"
	"os"

	"guide/receiver"
)

func main() {
	body, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	header := http.Header{}
	header.Set("webhook-id", os.Args[3])
	header.Set("webhook-timestamp", os.Args[4])
	header.Set("webhook-signature", os.Args[5])
	fmt.Println(receiver.Verify([]byte(os.Args[1]), header, body))
}
`)
		program := filepath.Join(dir, "verify")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-buildvcs=false")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("the guide's program does not build: %v\n%s", err, out)
		}
		check(t, func(secret, body string) *exec.Cmd {
			return exec.Command(program, secret, body, header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature"))
		})
	})
}
