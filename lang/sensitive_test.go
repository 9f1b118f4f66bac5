package lang

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// sourceNames opens what reversing sealed.
func sourceNames(t *testing.T, texts []schema.Text) []string {
	t.Helper()
	var values []string
	for _, text := range texts {
		if !isSealed(text) {
			t.Fatalf("%v is not sealed", text)
		}
		value, err := text.Reveal(reversing{})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return values
}

// TestWhatWentIntoATextIsKnown holds that a job knows the sensitive values that
// its texts are made of, however they were transformed.
func TestWhatWentIntoATextIsKnown(t *testing.T) {
	t.Parallel()
	const variables = `
		variable "pw" {; sensitive = true; default = "hunter2"; }
		variable "other" {; sensitive = true; default = "unused"; }
		variable "public" {; default = "public"; }
		variable "map" {; sensitive = true; default = { user = "me", deep = "in the map", port = 5432, on = true }; }
		variable "list" {; sensitive = true; default = ["first", "second"]; }
		locals {
			url  = "https://me:${var.pw}@host"
			json = jsonencode({ url = local.url, plain = 1 })
		}`
	for _, c := range []struct {
		expr string
		want []string
	}{
		{`"x"`, nil},
		{`var.public`, nil},
		{`var.pw`, nil}, // the text itself is the value
		{`local.url`, []string{"hunter2"}},
		{`local.json`, []string{"hunter2"}},
		{`base64encode(local.json)`, []string{"hunter2"}},
		{`sha256(var.pw)`, []string{"hunter2"}},
		{`upper(substr(var.pw, 0, 3))`, []string{"hunter2"}},
		{`"${var.pw}-${sensitive("inline")}"`, []string{"hunter2", "inline"}},
		{`join(",", [for s in var.list : "<${s}>"])`, []string{"first", "second"}},
		{`"x${var.map.deep}"`, []string{"5432", "in the map", "me"}},
		{`var.pw == "" ? "none" : "some"`, []string{"hunter2"}},
		{`nonsensitive(local.url)`, nil},
		{`"${nonsensitive(var.pw)}-${var.list[0]}"`, []string{"first", "second"}},
		{`try(var.map.missing, "x${var.pw}")`, []string{"5432", "hunter2", "in the map", "me"}},
	} {
		for name, place := range map[string]string{
			"command": `command = ["x", %s]`,
			"env":     `command = ["x"]; environment {; env = { A = %s }; }`,
		} {
			config := mustEvaluate(t, variables+fmt.Sprintf("\njob \"a\" {; "+place+"; }", c.expr), eval.Options{})
			sealed, err := config.Desired.Seal(reversing{})
			if err != nil {
				t.Fatal(err)
			}
			if got := sourceNames(t, sealed.Jobs[0].Sensitive); !slices.Equal(got, c.want) {
				t.Errorf("%s in %s: made of %q, want %q", c.expr, name, got, c.want)
			}
			again, err := sealed.Seal(reversing{})
			if err != nil || !slices.Equal(again.Jobs[0].Sensitive, sealed.Jobs[0].Sensitive) {
				t.Errorf("%s in %s: sealed twice it is made of %v, %v", c.expr, name, again.Jobs[0].Sensitive, err)
			}
		}
	}
}

// TestArgumentsOfActorsAreKnown holds the same of what a constructor is given.
func TestArgumentsOfActorsAreKnown(t *testing.T) {
	t.Parallel()
	config := mustEvaluate(t, `
		variable "pw" {; sensitive = true; default = "hunter2"; }
		actor_service "a" {
			command = ["x"]
			actor {
				class = "m:C"
				args  = { url = "https://${var.pw}@host", n = 1 }
			}
		}`, eval.Options{})
	sealed, err := config.Desired.Seal(reversing{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sourceNames(t, sealed.Jobs[0].Sensitive); !slices.Equal(got, []string{"hunter2"}) {
		t.Errorf("made of %q, want the variable's value", got)
	}
}

// TestDigestsLeaveOutWhatWentIn holds that a job which is recorded without the
// values that went into its texts is the same as one recorded with them.
func TestDigestsLeaveOutWhatWentIn(t *testing.T) {
	t.Parallel()
	job := schema.Job{Addr: schema.Address{Kind: schema.KindJob, Name: "a"}, Command: []schema.Text{schema.Plain("x")}}
	before, err := schema.DigestOf(&job)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := schema.Secret("abc").Seal(reversing{})
	if err != nil {
		t.Fatal(err)
	}
	job.Sensitive = []schema.Text{sealed}
	for _, spec := range []any{job, &job} {
		if after, err := schema.DigestOf(spec); err != nil || after != before {
			t.Errorf("digest of %T = %s, %v, want %s", spec, after, err, before)
		}
	}
	if len(job.Sensitive) != 1 {
		t.Error("DigestOf changed what it was given")
	}
}
