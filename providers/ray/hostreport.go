package ray

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/providers"
)

// hostReports are the last reports of hosts in what a driver has written, by lines such as
// "fray: host 1: failed: …".
func hostReports(logs string) []providers.HostReport {
	last := map[int]string{}
	for line := range strings.Lines(logs) {
		rest, is := strings.CutPrefix(line, driverMark+"host ")
		number, status, hasStatus := strings.Cut(rest, ": ")
		n, err := strconv.Atoi(number)
		if is && hasStatus && err == nil {
			last[n] = strings.TrimSpace(status)
		}
	}
	var reports []providers.HostReport
	for n, status := range last {
		reports = append(reports, providers.HostReport{Host: n, Status: status})
	}
	slices.SortFunc(reports, func(a, b providers.HostReport) int { return cmp.Compare(a.Host, b.Host) })
	return reports
}
