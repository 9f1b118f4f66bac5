package lang

import (
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/eval"
)

// TestPartial: without values for variables the files are judged all the same,
// and nothing that only lacks a value is an error.
func TestPartial(t *testing.T) {
	const variables = `
		variable "n" { type = number }
		variable "names" { type = set(string) }
		variable "words" { type = list(string) }
		variable "env" { type = map(string) }
		variable "any" {}
		variable "secret" {
			type      = string
			sensitive = true
		}
		variable "checked" {
			type = number
			validation {
				condition     = var.checked > 3
				error_message = "Want more than 3."
			}
		}`
	for _, c := range []struct {
		name, body string
		problem    string // summary of the only one, "" for none
	}{
		{"values", `job "a" { command = ["x", var.any, "${var.secret}-${var.n}"] }`, ""},
		{"count, and who refers to it", `
			job "a" {
				count   = var.n
				command = ["x", count.index]
			}
			job "b" {
				command    = ["y", job.a[0].address, join(",", job.a[*].address)]
				depends_on = [job.a]
			}
			output "o" { value = job.a[2].ports }`, ""},
		{"for_each, and who refers to it", `
			job "a" {
				for_each = var.names
				command  = ["x", each.key, each.value]
			}
			job "b" { command = ["y", job.a["k"].address, [for k, j in job.a : j.id][0]] }`, ""},
		{"whole lists and maps", `
			job "a" {
				command = var.words
				environment { env = var.env }
			}
			job "b" {
				command = concat(["x"], var.words)
				labels  = var.env
			}`, ""},
		{"numbers and shapes", `
			job "a" {
				command = ["x"]
				timeout = var.any
				resources {
					tpu    = var.any
					slices = var.n
					ports  = var.words
				}
				retries { failure = var.n }
				health_check {
					http = "/"
					port = var.any
				}
			}
			actor_service "s" {
				replicas = var.n
				command  = ["x"]
			}
			reservation "r" {
				min {
					cpu    = var.n
					slices = var.n
				}
			}
			job "drawn" {
				command = ["x"]
				resources { reservation = reservation.r }
			}`, ""},
		{"locals and functions", `
			locals { all = { for n in var.names : n => upper(n) } }
			job "a" {
				for_each = local.all
				command  = ["x", format("%s-%d", each.value, var.n), try(var.any.b.c, "d")]
			}
			output "o" {
				value     = var.secret
				sensitive = true
			}`, ""},
		{"a mistake is found", `job "a" { command = ["x", var.m] }`, "Reference to nothing"},
		{"a mistake beside what is not known", `
			job "a" {
				count   = var.n
				command = ["x"]
				comand  = ["y"]
			}`, "Unknown attribute"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parseText(t, variables+"\n"+c.body)
			config, diags := s.Evaluate(eval.Options{Partial: true})
			diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == "Unused variable" })
			switch {
			case c.problem == "" && (len(diags) > 0 || !config.Partial):
				t.Errorf("got %v, want nothing, and a partial configuration", diags)
			case c.problem != "" && (len(diags) != 1 || diags[0].Summary != c.problem):
				t.Errorf("got %v, want %q alone", diags, c.problem)
			}
			if _, diags := s.Evaluate(eval.Options{}); !diags.HasErrors() {
				t.Error("without Partial there is no error")
			}
		})
	}
	complete, diags := parseText(t, `job "a" { command = ["x"] }`).Evaluate(eval.Options{Partial: true})
	if diags.HasErrors() || complete.Partial || len(complete.Desired.Jobs) != 1 {
		t.Errorf("got %+v, %v, want a whole configuration", complete, diags)
	}
}
