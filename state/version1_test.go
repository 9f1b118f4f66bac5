package state_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestDecodeVersion1 reads documents that fray wrote when version 1 was the
// present one. That was the JSON package's form of a document.
func TestDecodeVersion1(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "v1", "*.json"))
	if err != nil || len(files) != 4 {
		t.Fatalf("got files %v, %v, want four", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want state.Document
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if want.FormatVersion != 1 {
				t.Fatalf("got a document of version %d, want 1", want.FormatVersion)
			}
			want.FormatVersion = state.FormatVersion
			typeCauses(t, data, &want)
			for _, s := range want.Slices {
				if s.Error != "" {
					s.Failed = schema.ErrorUnavailable
				}
			}
			for name, o := range want.Outputs {
				if o.Value != nil {
					o.Value = compact(t, o.Value)
					want.Outputs[name] = o
				}
			}
			got, err := state.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			mustBeSame(t, want, got)
			roundTrip(t, got)
		})
	}
}

// typeCauses puts the causes in that follow from the texts of an older document.
func typeCauses(t *testing.T, data []byte, d *state.Document) {
	t.Helper()
	var old struct {
		Slices map[string]struct {
			Terminating string `json:"doomed"`
			Taken       bool   `json:"taken"`
		} `json:"slices"`
	}
	if err := json.Unmarshal(data, &old); err != nil {
		t.Fatal(err)
	}
	for name, s := range old.Slices {
		switch {
		case s.Terminating == "":
		case s.Taken:
			d.Slices[name].Terminating = state.Termination{Cause: state.CausePreempted, Text: s.Terminating}
		default:
			d.Slices[name].Terminating = state.Termination{Cause: state.CauseUnknown, Text: s.Terminating}
		}
	}
}
