package lang

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
)

// offerText is what a generation costs by values that have to be there first.
const offerText = `provider "gcp" {
  project = "p"
  zones   = ["us-west1-c"]
  offer "v6e" {
    zones     = local.zones
    on_demand = local.price
  }
}
locals {
  price = 2.5
  zones = ["asia-east1-a", "us-west1-c"]
}
`

// TestData reads each kind of data and checks what of it arrives where.
func TestData(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"output":            {`data "outputs" "o" {}`, `data.outputs.o.values.plain => p`},
		"default":           {`data "outputs" "o" { defaults = { more = "d", plain = "no" } }`, `"${data.outputs.o.values.more}${data.outputs.o.values.plain}" => dp`},
		"secret output":     {`data "outputs" "o" {}`, `data.outputs.o.values.secret.k => (sensitive value)`},
		"reservation":       {`data "reservation" "pool" {}`, `"${data.reservation.pool.free} of ${data.reservation.pool.max}" => 1 of 3`},
		"named reservation": {"data \"reservation\" \"r\" {\nname = \"pool\"\n}", `data.reservation.r.slices[1] => b`},
		"by key":            {"data \"reservation\" \"r\" {\nfor_each = toset([\"pool\"])\nname = each.key\n}", `data.reservation.r["pool"].name => pool`},
		"counted":           {"data \"accelerators\" \"a\" {\ncount = 2\nprovider = \"gcp\"\ngeneration = \"v5e\"\nmin_chips = 8\nmax_chips = 16\n}", `join(",", data.accelerators.a[1].types) => v5litepod-8,v5litepod-16`},
		"zones":             {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\nzones = [\"us-central2-b\"]\nmax_chips = 4\n}", `join(",", [for o in data.accelerators.a.offers : "${o.type}@${o.zones[0].zone}"]) => v4-8@us-central2-b`},
		"price":             {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\ngeneration = \"v5p\"\nmax_chips = 4\n}", `"${data.accelerators.a.offers[0].zones[0].per_hour}" => 16.8`},
		"spot price":        {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\ngeneration = \"v6e\"\nmax_chips = 4\n}", `"${data.accelerators.a.offers[1].zones[0].spot_per_hour}" => 2.6`},
		"offered":           {"data \"accelerators\" \"a\" {\ngeneration = \"v6e\"\nmax_chips = 1\n}\n" + offerText, `"${join(",", data.accelerators.a.offers[0].zones[*].zone)} ${data.accelerators.a.offers[0].zones[0].per_hour}" => asia-east1-a,us-west1-c 2.5`},
		"not of local":      {"data \"accelerators\" \"a\" {\nprovider = \"local\"\ngeneration = \"v6e\"\nmax_chips = 1\n}\n" + offerText, `"${join(",", data.accelerators.a.offers[0].zones[*].zone)} ${data.accelerators.a.offers[0].zones[0].per_hour}" => local 0`},
		"GPUs":              {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\ngpu = \"H100\"\nmin_chips = 8\n}", `join(",", [for o in data.accelerators.a.gpus : "${o.machine_type}:${o.count}x${o.type} ${o.memory / 1024 / 1024 / 1024}"]) => a3-highgpu-8g:8xh100 80,a3-megagpu-8g:8xh100 80`},
		"GPUs alone":        {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\ngpu = \"l4\"\n}", `"${length(data.accelerators.a.types)} ${length(data.accelerators.a.gpus)}" => 0 8`},
		"TPUs alone":        {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\ngeneration = \"v6e\"\n}", `length(data.accelerators.a.gpus) => 0`},
		"price of a GPU":    {"data \"accelerators\" \"a\" {\nprovider = \"gcp\"\ngpu = \"t4\"\nmin_chips = 4\nzones = [\"us-west4-a\"]\n}\nprovider \"gcp\" {\nproject = \"p-12345\"\nzones = [\"us-west4-a\"]\noffer \"nvidia-tesla-t4\" {\nspot = 0.25\n}\n}", `data.accelerators.a.gpus[0].zones[0].spot_per_hour => 1`},
		"waits":             {"data \"outputs\" \"o\" {\ndepends_on = [job.first]\n}\njob \"first\" {\ncommand = [\"x\"]\n}", `data.outputs.o.values.plain => (known after apply)`},
		"waits for value":   {"data \"reservation\" \"r\" {\nname = job.first.id\n}\njob \"first\" {\ncommand = [\"x\"]\n}", `data.reservation.r.tpu => (known after apply)`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expr, want, _ := strings.Cut(tt.want, " => ")
			s := parseText(t, tt.text+"\njob \"reads\" {\ncommand = [\"x\", "+expr+"]\n}\n")
			config, diags := s.Evaluate(eval.Options{Data: fakeReader{}})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			for _, j := range config.Desired.Jobs {
				if got := j.Command[len(j.Command)-1].String(); j.Addr.Name == "reads" && got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// TestDataOfACheck: what cannot be read for a check warns, and stops nothing.
func TestDataOfACheck(t *testing.T) {
	t.Parallel()
	const data = "data \"reservation\" \"gone\" {\n}\n"
	const assert = "assert {\ncondition = data.reservation.gone.free > 0\nerror_message = \"none\"\n}\n"
	_, diags := parseText(t, "check \"c\" {\n"+data+assert+"}\n").Evaluate(eval.Options{Data: fakeReader{}})
	if diags.HasErrors() || len(diags) != 1 || diags[0].Summary != "Data cannot be read" {
		t.Errorf("in a check: %v, want one warning", diags)
	}
	_, diags = parseText(t, data).Evaluate(eval.Options{Data: fakeReader{}})
	if !diags.HasErrors() {
		t.Errorf("outside: %v, want an error", diags)
	}
}
