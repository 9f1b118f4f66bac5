package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// keptSecret is what must not be found: it is part of a URL in the environment,
// and the programs take it out of that.
const keptSecret = `pa"ss/w+rd<7>é`

// telltales write their secret in every way, one of them each.
const telltales = `
variable "pw" {
  type      = string
  sensitive = true
}
variable "tokens" {
  type      = map(string)
  sensitive = true
  default   = { unused = "x", deep = "deep-token-12345" }
}
locals {
  url  = "https://me:${var.pw}@host"
  tell = <<-EOT
    import base64, json, os, sys, time, urllib.parse
    pw = os.environ["URL"].removeprefix("https://me:").removesuffix("@host")
    deep = json.loads(base64.b64decode(os.environ["CONFIG"]))["token"]
    for s in pw, deep:
        print("plain", s)
        print("url", urllib.parse.quote(s), urllib.parse.quote_plus(s), urllib.parse.quote(s, safe=""))
        print("json", json.dumps({"pw": s}), json.dumps({"pw": s}, ensure_ascii=False), repr(s))
        for n in range(3):
            data = b"xy"[:n] + s.encode()
            print("base64", base64.b64encode(data + b"tail").decode(), base64.urlsafe_b64encode(data).decode())
        print("json in base64", base64.b64encode(json.dumps({"pw": s}).encode()).decode())
        print("hex", s.encode().hex())
        print("lines", "\n".join(s), base64.encodebytes(b"z" * 50 + s.encode()).decode())
        for c in s:
            sys.stdout.write(c)
            sys.stdout.flush()
            time.sleep(0.01)
        print()
        sys.stdout.flush()
    print("told", flush=True)
  EOT
}
job "fails" {
  command = ["python3", "-c", "${local.tell}\nraise ValueError(pw, deep)"]
  environment {
    env = { URL = local.url, CONFIG = base64encode(jsonencode({ token = var.tokens.deep })) }
  }
}
job "unhealthy" {
  command = ["sleep", "1000"]
  health_check {
    exec      = ["sh", "-c", "echo unhealthy $URL $${URL#https://me:} >&2; exit 1"]
    threshold = 1
    interval  = "100ms"
  }
  environment {
    env = { URL = local.url }
  }
}
job "runs" {
  command = ["python3", "-c", "${local.tell}\ntime.sleep(1000)", upper(local.url)]
  environment {
    env = { URL = local.url, CONFIG = base64encode(jsonencode({ token = var.tokens.deep })) }
  }
}
output "url" {
  value     = local.url
  sensitive = true
}
`

// needles are what the secrets look like, each in one way.
func needles() map[string]string {
	found := map[string]string{}
	for i, secret := range []string{keptSecret, "deep-token-12345"} {
		quoted, err := json.Marshal(secret)
		if err != nil {
			panic(err)
		}
		add := func(name, text string) { found[fmt.Sprintf("%s of secret %d", name, i)] = text }
		add("plain", secret)
		add("first half", secret[:len(secret)/2])
		add("second half", secret[len(secret)/2:])
		add("json", strings.Trim(string(quoted), `"`))
		add("query", url.QueryEscape(secret))
		add("path", url.PathEscape(secret))
		add("hex", hex.EncodeToString([]byte(secret)))
		for n := range 3 {
			for name, alphabet := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 url": base64.RawURLEncoding} {
				digits := alphabet.EncodeToString(append([]byte("xy")[:n], secret...))
				add(fmt.Sprintf("%s after %d", name, n), digits[n+1:len(digits)-2])
			}
		}
	}
	return found
}

// mustHide holds that a secret is in none of what is kept or shown at a place.
func mustHide(t *testing.T, place, text string) {
	t.Helper()
	flat := strings.NewReplacer("\n", "", "\r", "").Replace(text)
	for name, needle := range needles() {
		for _, where := range []string{text, flat} {
			if at := strings.Index(where, needle); at >= 0 {
				t.Errorf("%s has %s: …%q…", place, name, where[max(0, at-100):min(len(where), at+100)])
				break
			}
		}
	}
}

// TestSecretsAreMaskedEverywhere lets tasks write secrets in every way, of which
// fray knows only what they are part of, and looks at all that is kept and shown.
func TestSecretsAreMaskedEverywhere(t *testing.T) {
	for _, name := range []string{"directory", "bucket"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bucket *emulator
			if name == "bucket" {
				bucket = newEmulator(t)
			}
			s := newProofStack(t, bucket)
			s.env = append(s.env, "FRAY_VAR_pw="+keptSecret)
			s.write(t, telltales)
			show := func(args ...string) string {
				t.Helper()
				got, err := s.run(t, nil, args...)
				if err != nil {
					t.Fatal(err)
				}
				mustHide(t, "fray "+strings.Join(args, " "), got.stdout+got.stderr)
				return got.stdout + got.stderr
			}
			show("plan")
			show("apply", "--auto-approve")
			watch := s.command(t, nil, "watch", "--http", "127.0.0.1:0")
			var out strings.Builder
			watch.Stdout, watch.Stderr = &out, &out
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_ = watch.Wait() // it is told to end
			}()
			t.Cleanup(func() {
				_ = watch.Process.Kill() // which may have happened
				<-gone
			})
			st, err := s.store(t)
			if err != nil {
				t.Fatal(err)
			}
			if err := within(proofPatience, func() error { return s.told(t, st) }); err != nil {
				t.Fatal(err)
			}
			s.looksEverywhere(t, st, show)
			if err := watch.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			<-gone
			mustHide(t, "fray watch", out.String())
			if logs := show("logs", "job.runs"); strings.Count(logs, "(sensitive value)") < 20 || !strings.Contains(logs, "told") {
				t.Errorf("the log of job.runs: %s", logs)
			}
			show("destroy", "--auto-approve")
			s.keepsNothing(t)
		})
	}
}

// told is nil once all tasks have written all, and the controller knows it.
func (s *proofStack) told(t *testing.T, st store.Store) error {
	for _, job := range []string{"fails", "runs"} {
		got, err := s.run(t, nil, "logs", "job."+job)
		if err != nil || !strings.Contains(got.stdout, "told") {
			return fmt.Errorf("job.%s has not told all: %v, %w", job, got, err)
		}
	}
	lease, err := store.ReadLease(t.Context(), st)
	if err != nil || lease.ControllerHTTP == "" {
		return fmt.Errorf("no page is served: %w", err)
	}
	got, err := s.run(t, nil, "status", "--json")
	if err != nil || strings.Count(got.stdout, `"failed"`) < 2 {
		return fmt.Errorf("two jobs have not failed: %v, %w", got, err)
	}
	return nil
}

// looksEverywhere looks at what a stack shows while its watch runs.
func (s *proofStack) looksEverywhere(t *testing.T, st store.Store, show func(...string) string) {
	t.Helper()
	status := show("status")
	if !strings.Contains(status, "(sensitive value)") || !strings.Contains(status, "health check failed") {
		t.Errorf("the status has no last lines: %s", status)
	}
	for _, args := range [][]string{
		{"status", "--json"}, {"logs", "job.fails"}, {"logs", "job.runs"}, {"show"}, {"show", "--json"}, {"output"}, {"plan"}, {"plan", "--json"},
		{"events"}, {"state", "pull"}, {"plan", "--var=pw=another-password"},
	} {
		show(args...)
	}
	lease, err := store.ReadLease(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	object, err := st.Get(t.Context(), store.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Jobs map[schema.Address]struct {
			ID string `json:"id"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(object.Data, &doc); err != nil {
		t.Fatal(err)
	}
	pages := []string{"", "api/v1/overview", "api/v1/jobs", "api/v1/slices", "api/v1/events", "metrics"}
	for _, j := range doc.Jobs {
		pages = append(pages, "api/v1/jobs/"+j.ID, "api/v1/jobs/"+j.ID+"/logs", "api/v1/jobs/"+j.ID+"/logs?follow=false")
	}
	if len(doc.Jobs) != 3 {
		t.Errorf("the state has %d jobs", len(doc.Jobs))
	}
	for _, page := range pages {
		body := ""
		// A watch serves its pages before its first look at the jobs.
		if err := within(proofPatience, func() (err error) {
			body, err = pageOf("http://" + strings.TrimPrefix(lease.ControllerHTTP, "http://") + "/" + page)
			return err
		}); err != nil {
			t.Error(err)
		}
		mustHide(t, "page "+page, body)
	}
	s.keepsNothing(t)
}

// pageOf is what a page says; anything but success is an error.
func pageOf(url string) (string, error) {
	reply, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", url, reply.StatusCode, body)
	}
	return string(body), err
}

// keepsNothing looks at all files of the stack and all objects of its bucket.
func (s *proofStack) keepsNothing(t *testing.T) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Join(s.dir, ".fray"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files++
		mustHide(t, path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.bucket == nil {
		if files < 5 {
			t.Errorf("only %d files are in .fray", files)
		}
		return
	}
	found, err := s.bucket.service.ListObjectsWithOptionsPaginated(emulatedBucket, fakestorage.ListOptions{Versions: true})
	if err != nil || len(found.Objects) < 5 {
		t.Fatalf("list objects: %d, %v", len(found.Objects), err)
	}
	for _, o := range found.Objects {
		object, err := s.bucket.service.GetObjectWithGeneration(emulatedBucket, o.Name, o.Generation)
		if err != nil {
			continue // an agent has replaced it
		}
		name, _ := url.PathUnescape(object.Name)
		mustHide(t, "object "+name, string(object.Content))
	}
}
