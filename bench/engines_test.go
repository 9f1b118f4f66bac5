package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnginesAreAPart(t *testing.T) {
	got, err := parseOptions([]string{"engines"})
	if err != nil || len(got.parts) != 1 {
		t.Errorf("parseOptions(engines) = %v, %v, want that part", got.parts, err)
	}
	_, err = parseOptions([]string{"engine"})
	if err == nil || !strings.Contains(err.Error(), `"engines"`) {
		t.Errorf("parseOptions(engine): got error %v, want one that lists engines", err)
	}
}

// What a row takes is what its program measures: under that name, of both.
func TestEngineRowsAreMeasured(t *testing.T) {
	for _, row := range engineRows(engineJobs) {
		program := "ray_jobs.py"
		if row.actors {
			program = "on_ray.py"
		}
		text, err := os.ReadFile(filepath.Join("actors", program))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `"`+row.name) {
			t.Errorf("%s measures no %q", program, row.name)
		}
	}
}

func TestEngineRowsShowTheirSpread(t *testing.T) {
	row := engineRow{name: "create", format: secondsText}
	rows := map[string]float64{
		"create, fray": 0.5, "create first quartile, fray": 0.25, "create third quartile, fray": 0.75,
		"create, ray": 1,
	}
	if got, want := row.measured(rows, "fray"), "500.0 ms (250.0 ms to 750.0 ms)"; got != want {
		t.Errorf("measured(fray) = %q, want %q", got, want)
	}
	if got, want := row.measured(rows, "ray"), "1000.0 ms"; got != want {
		t.Errorf("measured(ray) = %q, want %q", got, want)
	}
}
