package markdown_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheGuidesExample holds the examples of the guide to what is written.
func TestTheGuidesExample(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/reviews.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```(?:markdown|diff)\n(.*?)^```$").FindAllSubmatch(guide, -1)
	if len(blocks) != 2 {
		t.Fatalf("got %d blocks, want 2", len(blocks))
	}
	_, text := reviewOf(t, "replace")
	for _, block := range blocks {
		if !strings.Contains(text, string(block[1])) {
			t.Errorf("this block is not in the golden replace:\n%s", block[1])
		}
	}
}
