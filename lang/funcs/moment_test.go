package funcs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/bcrypt"

	"github.com/fray-ml/fray/lang/files"
)

// encrypted is a text for a key.
type encrypted struct {
	pem    string
	secret []byte
}

// rsaKey has a key, and "Hello World" as it was encrypted for it.
var rsaKey = sync.OnceValue(func() encrypted {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	secret, err := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, []byte("Hello World"))
	if err != nil {
		panic(err)
	}
	return encrypted{string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})), secret}
})

// TestMoment: what is not of the arguments alone is known when its time has come, and
// the same in every evaluation of the same place.
func TestMoment(t *testing.T) {
	t.Parallel()
	folder := files.NewFolder(files.Disk{}, functionFiles(t))
	planned := Moment{Planned: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	begun := planned.Begun(time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC))
	value := func(m Moment, at Place, expression string) cty.Value {
		functions, _ := At(folder, m, at)
		ctx := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{}}
		val, diags := evaluateExpression(t, ctx, expression)
		if diags.HasErrors() {
			t.Fatalf("%s: %v", expression, diags)
		}
		return val
	}
	for _, expression := range []string{
		`timestamp()`, `uuid()`, `bcrypt("x")`, `formatdate("YYYY", timestamp())`, `templatestring("$${timestamp()}", {})`,
	} {
		if val := value(planned, "a", expression); val.IsKnown() {
			t.Errorf("%s is %#v before the plan is applied", expression, val)
		}
		if a, b := value(begun, "a", expression), value(begun, "a", expression); !a.IsWhollyKnown() || !a.RawEquals(b) {
			t.Errorf("%s is %#v and then %#v", expression, a, b)
		}
	}
	if val := value(Moment{}, "a", `plantimestamp()`); val.IsKnown() {
		t.Errorf("plantimestamp() is %#v without a plan", val)
	}
	if val := value(begun, "a", `"${plantimestamp()} ${timestamp()}"`); val.AsString() != "2026-01-02T03:04:05Z 2026-02-03T04:05:06Z" {
		t.Errorf("the times are %s", val.AsString())
	}
	uuids := value(begun, "a", `join(" ", [for i in range(3) : uuid()])`).AsString()
	form := regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} ?){3}$`)
	seen := map[string]bool{value(begun, "b", `uuid()`).AsString(): true, value(planned.Begun(begun.Applied), "a", `uuid()`).AsString(): true}
	for id := range strings.FieldsSeq(uuids) {
		seen[id] = true
	}
	if !form.MatchString(uuids) || len(seen) != 5 {
		t.Errorf("the UUIDs are %s, and with those of another place and another apply %d differ", uuids, len(seen))
	}
}

// TestBcrypt: the hashes are those of the bcrypt of golang.org/x/crypto.
func TestBcrypt(t *testing.T) {
	t.Parallel()
	folder := files.NewFolder(files.Disk{}, t.TempDir())
	ctx := func() *hcl.EvalContext {
		functions, _ := At(folder, Moment{}.Begun(time.Unix(1, 0)), "a")
		return &hcl.EvalContext{Functions: functions}
	}
	for _, text := range []string{"", "hunter2", "größe", strings.Repeat("x", 72)} {
		for expression, cost := range map[string]int{fmt.Sprintf("bcrypt(%q, 4)", text): 4, fmt.Sprintf("bcrypt(%q)", text): 10} {
			val, diags := evaluateExpression(t, ctx(), expression)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			hash := []byte(val.AsString())
			got, err := bcrypt.Cost(hash)
			if err != nil || got != cost || bcrypt.CompareHashAndPassword(hash, []byte(text)) != nil {
				t.Errorf("%s = %s, of cost %d (%v), does not fit its text", expression, hash, got, err)
			}
		}
	}
	for _, expression := range []string{`bcrypt("x", 3)`, `bcrypt("x", 16)`, `bcrypt("x", 4, 5)`, `bcrypt(null)`, `bcrypt("` + strings.Repeat("x", 73) + `")`} {
		if val, diags := evaluateExpression(t, ctx(), expression); !diags.HasErrors() {
			t.Errorf("%s = %#v, want an error", expression, val)
		}
	}
}

// TestRSADecrypt: keys in each form of PEM, and what none of them decrypts.
func TestRSADecrypt(t *testing.T) {
	t.Parallel()
	dir := functionFiles(t)
	ctx := &hcl.EvalContext{Functions: InDirectory(dir)}
	for expression, want := range map[string]string{
		`rsadecrypt(filebase64("secret.bin"), file("key.pem"))`:               "Hello World",
		`rsadecrypt("AAAA", file("key.pem"))`:                                 "does not decrypt",
		`rsadecrypt("?", file("key.pem"))`:                                    "no base64",
		`rsadecrypt(filebase64("secret.bin"), "-----BEGIN PRIVATE KEY-----")`: "no private key",
	} {
		val, diags := evaluateExpression(t, ctx, expression)
		got := diags.Error()
		if !diags.HasErrors() {
			got = val.AsString()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "BEGIN") && diags.HasErrors() && !strings.Contains(expression, "BEGIN") {
			t.Errorf("%s = %s, want %s", expression, got, want)
		}
	}
}
