package bugreport

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang/eval"
)

// secretTexts are secrets in their surroundings, with what must not stay of each.
func secretTexts() []struct{ name, text, secret string } {
	return []struct{ name, text, secret string }{
		{"GitHub", "cloning with ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 now", "A1b2C3d4E5f6G7h8I9j0"},
		{"GitHub fine-grained", "github_pat_" + "11ABCDEFG0abcdefghij_klmnop", "11ABCDEFG0abcdefghij"},
		{"GitLab", "glpat-" + "x1y2z3a4b5c6d7e8f9g0", "x1y2z3a4b5c6d7e8f9g0"},
		{"Slack", "xoxb-" + "123456789012-abcdefGHIJKL", "123456789012-abcdefGHIJKL"},
		{"Google key", "key AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "SyA1b2C3d4E5f6G7h8"},
		{"Google token", "ya29." + "a0AfH6SMBx1y2z3a4b5c6", "a0AfH6SMBx1y2z3a4b5c6"},
		{"AWS", "AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"},
		{"JWT", "Cookie eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "eyJzdWIiOiIxMjM0NTY3ODkwIn0"},
		{"private key", "a\n-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEpAIBAAKCAQEA7\nbcdef\n-----END RSA PRIVATE " + "KEY-----\nb", "MIIEpAIBAAKCAQEA7"},
		{"private key in JSON", `{"k":"-----BEGIN PRIVATE ` + `KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE ` + `KEY-----\n"}`, "MIIEvQIBADANBg"},
		{"private key that is cut at its end", "-----BEGIN OPENSSH PRIVATE " + "KEY-----\nb3BlbnNzaC1rZXktdjE", "b3BlbnNzaC1rZXktdjE"},
		{"private key that is cut at its beginning", "b3BlbnNzaC1rZXktdjE\nAAAA\n-----END OPENSSH PRIVATE " + "KEY-----\nrest", "b3BlbnNzaC1rZXktdjE"},
		{"Slack's webhook", "post to https://hooks.slack.com/services/T0001/B0002/abcdEFGH", "T0001/B0002/abcdEFGH"},
		{"another webhook", "https://example.com/webhooks/abcdEFGH1234", "abcdEFGH1234"},
		{"password in an address", "postgres://me:pa55w0rd@db/x", "pa55w0rd"},
		{"token in an address", "GET /a?x=1&access_token=abc123def456&y=2", "abc123def456"},
		{"bearer", "Authorization: Bearer abcDEF123456.x", "abcDEF123456.x"},
		{"basic", "authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
		{"variable", "export DB_PASSWORD=tiger77", "tiger77"},
		{"JSON", `{"api_key": "zebra 77 x", "a": 1}`, "zebra 77 x"},
		{"HCL", `client_secret = "lion 88"`, "lion 88"},
		{"YAML", "  auth_token: panther99", "panther99"},
		{"JSON in JSON", `{"e":"{\"token\":\"jaguar11\"}"}`, "jaguar11"},
		{"flag", "train --password cheetah22 --steps 5", "cheetah22"},
		{"flag with =", "train --api-key=cheetah33", "cheetah33"},
		{"flag in a list", "[\"train\",\n  \"--password\",\n  \"cheetah44\"]", "cheetah44"},
		{"Hugging Face", "hf_" + "AbCdEfGhIjKlMnOpQrSt", "AbCdEfGhIjKlMnOpQrSt"},
		{"age", "AGE-SECRET-KEY-1" + "QQPZRY9X8GF2TVDW0", "QQPZRY9X8GF2TVDW0"},
		{"sealed", `{"sealed":"v1:abcdefghijklmnopqrstuvwxyz0123456789=="}`, "abcdefghijklmnopqrstuvwxyz"},
	}
}

// TestShapesOfSecrets: each is masked with its surroundings left as they are, and a second pass changes nothing.
func TestShapesOfSecrets(t *testing.T) {
	r := newRedactor([]string{"known-value-1"})
	for _, test := range secretTexts() {
		t.Run(test.name, func(t *testing.T) {
			got, places := r.bytes([]byte("before\n" + test.text + "\nafter known-value-1"))
			text := string(got)
			if test.name == "private key that is cut at its beginning" {
				text = r.text(test.text)
			}
			if strings.Contains(text, test.secret) || places < 1 || !strings.Contains(text, marker) {
				t.Errorf("of %q stays %q (%d places)", test.text, text, places)
			}
			if strings.Contains(text, "known-value-1") {
				t.Errorf("a value that is known stays: %q", text)
			}
			if again := r.text(text); again != text {
				t.Errorf("masked twice it is %q, once %q", again, text)
			}
		})
	}
}

// TestPlainTextStays: what is no secret is not garbled.
func TestPlainTextStays(t *testing.T) {
	r := newRedactor(nil)
	for _, text := range []string{
		"step 10  loss 0.5  tokens 1024", "tokens_per_second 51234.5", `{"attempt": 3, "task": 0, "state": "running"}`, "https://example.com/a/b?page=2",
		"job.train waits for capacity in us-central1-a (2 of 4)", "goroutine 81 [running]:", "sha256:0123456789abcdef0123456789abcdef", "gs://bucket/prefix/state.json",
	} {
		if got := r.text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestDeclaredSecrets: what sensitive variables have in files, the environment and on the command line.
func TestDeclaredSecrets(t *testing.T) {
	files := map[string][]byte{
		"a.hcl": []byte(`
variable "pw" {
  type      = string
  sensitive = true
  default   = "preset-\"quoted\""
}
variable "maps" {
  sensitive = true
  default   = { a = ["inner-secret"] }
}
variable "open" {
  default = "not-secret"
}
variable "off" {
  sensitive = false
  default   = "not-secret-2"
}`),
		"x.auto.frayvars": []byte(`pw = "of-a-file"` + "\n" + `open = "plain"`),
		"broken.hcl":      []byte(`job "a" {`),
	}
	d := declaredSecrets(files, []eval.Given{{Kind: eval.GivenVar, Text: "pw=of-a-flag"}, {Kind: eval.GivenVar, Text: "open=o"}},
		[]string{"FRAY_VAR_pw=of-the-environment", "FRAY_VAR_open=plain-2", "pw=other"})
	got := strings.Join(d.secrets, "|")
	for _, want := range []string{`preset-"quoted"`, `preset-\"quoted\"`, "inner-secret", "of-a-file", "of-a-flag", "of-the-environment"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not among the secrets %q", want, got)
		}
	}
	for _, not := range []string{"not-secret", "plain", "other"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is among the secrets %q", not, got)
		}
	}
	if !d.unread["broken.hcl"] || d.unread["a.hcl"] {
		t.Errorf("files that cannot be parsed: %v", d.unread)
	}
}

// TestCutsLeaveNoSecret: a secret that the cut of a log goes through is masked whole before.
func TestCutsLeaveNoSecret(t *testing.T) {
	into := &sink{redact: newRedactor([]string{"half-of-this-secret"}), files: map[string]file{}}
	into.addTail("logs/x.log", []byte(strings.Repeat("line\n", 100)+"half-of-this-secret end"), 12)
	files, _ := into.close()
	if len(files) != 1 || strings.Contains(string(files[0].data), "secret e") || len(files[0].data) > 12 {
		t.Errorf("got %+v", files)
	}
	into.add("late", []byte("x"))
	if len(into.files) != 1 {
		t.Error("a sink that is closed takes a file")
	}
}

// TestNamesOfFiles: names stay within the archive, are masked and differ.
func TestNamesOfFiles(t *testing.T) {
	into := &sink{redact: newRedactor([]string{"name-secret"}), files: map[string]file{}}
	for _, name := range []string{"../../etc/passwd", "/abs/x", "logs/name-secret/a", "logs/job.a[\"k/é\"]", "logs/a\x00\nb", "x/ghp_" + "A1b2C3d4E5f6G7h8I9j0K1", "same\x01", "same\x02"} {
		into.add(name, []byte("x"))
	}
	files, _ := into.close()
	if len(files) != 8 {
		t.Errorf("%d files, want 8", len(files))
	}
	for _, f := range files {
		if strings.Contains(f.Name, "..") || strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, "name-secret") || strings.Contains(f.Name, "A1b2C3") || strings.ContainsAny(f.Name, "\x00\n\x01[]\"") {
			t.Errorf("a file is named %q", f.Name)
		}
	}
}

// TestLargeTextsAreMaskedInTime: 8 MiB, the largest file, takes less than the time a collector has.
func TestLargeTextsAreMaskedInTime(t *testing.T) {
	text := []byte(strings.Repeat(`{"job":"job.train","state":"running","attempt":3,"slice":"train-0-1234","at":"2026-01-01T00:00:00Z"}`+"\n", maxFile/100))
	began := time.Now()
	newRedactor([]string{"a-secret-value"}).bytes(text)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("masking %d bytes took %s", len(text), took)
	} else {
		t.Logf("masking %d bytes took %s", len(text), took)
	}
}
