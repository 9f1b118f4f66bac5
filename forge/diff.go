package forge

import (
	"regexp"
	"strconv"
	"strings"
)

// LinesOf are the lines of the new file that a unified diff shows, its context included.
func LinesOf(patch string) []Lines {
	// The head of a part; its groups are the first line of the new file and how many there are.
	hunk := regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)
	var shown []Lines
	for line := range strings.SplitSeq(patch, "\n") {
		found := hunk.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		from, err := strconv.Atoi(found[1])
		n := 1
		if err == nil && found[2] != "" {
			n, err = strconv.Atoi(found[2])
		}
		if err == nil && n > 0 {
			shown = append(shown, Lines{From: from, To: from + n - 1})
		}
	}
	return shown
}
