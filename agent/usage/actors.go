package usage

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fray-ml/fray/state"
)

const (
	// maxScrape is the most that is read of a program's metrics, in bytes.
	maxScrape = 4 << 20
	// maxActors is how many actors of a task are reported, those with the most calls.
	maxActors = 16
)

// counts are those of one actor since it began.
type counts struct {
	calls, errors, pending float64
	seconds                float64
	buckets                map[float64]float64 // calls that took at most so many seconds
}

// scraper reads the metrics of programs that host actors, of either language.
type scraper struct{ client http.Client }

// counts are those of the actors at an address, by name; none where nothing answers.
func (s *scraper) counts(ctx context.Context, address string) map[string]counts {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, maxScrape))
	if err != nil {
		return nil
	}
	return sum(families)
}

// sum adds up the methods of each actor.
func sum(families map[string]*dto.MetricFamily) map[string]counts {
	out := map[string]counts{}
	each := func(family string, add func(c *counts, m *dto.Metric)) {
		for _, m := range families[family].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "actor" && label.GetValue() != "" {
					c := out[label.GetValue()]
					add(&c, m)
					out[label.GetValue()] = c
				}
			}
		}
	}
	each("fray_actor_calls_total", func(c *counts, m *dto.Metric) { c.calls += m.GetCounter().GetValue() })
	each("fray_actor_errors_total", func(c *counts, m *dto.Metric) { c.errors += m.GetCounter().GetValue() })
	each("fray_actor_calls_pending", func(c *counts, m *dto.Metric) { c.pending += m.GetGauge().GetValue() })
	each("fray_actor_call_duration_seconds", func(c *counts, m *dto.Metric) {
		c.seconds += m.GetHistogram().GetSampleSum()
		if c.buckets == nil {
			c.buckets = map[float64]float64{}
		}
		for _, b := range m.GetHistogram().GetBucket() {
			c.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	})
	return out
}

// rates are what happened between two readings, of the actors with the most calls.
func rates(was, is map[string]counts, span float64) []state.ActorUsage {
	if was == nil || span <= 0 {
		return nil
	}
	var out []state.ActorUsage
	for _, name := range slices.Sorted(maps.Keys(is)) {
		now := is[name]
		before := was[name]
		if now.calls < before.calls { // the program began anew
			before = counts{}
		}
		calls := now.calls - before.calls
		a := state.ActorUsage{Name: name, Calls: calls / span, Errors: max(0, now.errors-before.errors) / span, Pending: int(now.pending)}
		if calls > 0 {
			a.Mean = (now.seconds - before.seconds) / calls
			a.P50, a.P99 = quantile(0.5, before, now), quantile(0.99, before, now)
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b state.ActorUsage) int { return cmp.Compare(b.Calls, a.Calls) })
	return out[:min(len(out), maxActors)]
}

// quantile is within which time a part of the calls between two readings was answered, as
// Prometheus estimates it: linear within a bucket.
func quantile(part float64, before, now counts) float64 {
	bounds := slices.Sorted(maps.Keys(now.buckets))
	if len(bounds) == 0 {
		return 0
	}
	total := now.calls - before.calls
	lower, below := 0.0, 0.0
	for _, bound := range bounds {
		n := now.buckets[bound] - before.buckets[bound]
		if n >= part*total && n > below {
			if bound > bounds[len(bounds)-1] || bound > maxBound {
				return lower
			}
			return lower + (bound-lower)*(part*total-below)/(n-below)
		}
		if bound <= maxBound {
			lower, below = bound, n
		}
	}
	return lower
}

// maxBound is above all bounds but the infinite one.
const maxBound = 1e12
