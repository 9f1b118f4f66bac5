package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/state"
)

// UsagePrefix is of the ledger of usage: what slices were used for, by day.
const UsagePrefix = "usage/"

// UsageOf is the prefix of the objects of one day ("2026-11-26", in UTC).
func UsageOf(day string) string { return UsagePrefix + day + "/" }

// UsageKey is the n-th object of a day that the holder of an epoch writes.
func UsageKey(day string, epoch uint64, n int) string {
	return fmt.Sprintf("%s%012d-%08d", UsageOf(day), epoch, n)
}

// UsageDayKey is the object into which those of a past day are joined.
func UsageDayKey(day string) string { return UsageOf(day) + "day" }

// UsageDay is the day of a key, "" of one that is none of the ledger's.
func UsageDay(key string) string {
	day, _, found := strings.Cut(strings.TrimPrefix(key, UsagePrefix), "/")
	if !found || !strings.HasPrefix(key, UsagePrefix) {
		return ""
	}
	return day
}

// EncodeUsage is the content of an object of the ledger: a line of JSON for each interval,
// compressed.
func EncodeUsage(intervals []state.UsageInterval) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range intervals {
		if err := enc.Encode(&intervals[i]); err != nil {
			return nil, fmt.Errorf("encode usage: %w", err)
		}
	}
	return state.Compress(b.Bytes())
}

// DecodeUsage reads an object of the ledger.
func DecodeUsage(data []byte) ([]state.UsageInterval, error) {
	text, err := state.Decompress(data)
	if err != nil {
		return nil, fmt.Errorf("decode usage: %w", err)
	}
	var intervals []state.UsageInterval
	for line := range bytes.Lines(text) {
		var i state.UsageInterval
		if err := json.Unmarshal(line, &i); err != nil {
			return nil, fmt.Errorf("decode usage: %w", err)
		}
		intervals = append(intervals, i)
	}
	return intervals, nil
}

// RequestsKey is how much the store was asked for.
const RequestsKey = UsagePrefix + "requests"

// EncodeRequests is the content of RequestsKey: JSON, compressed.
func EncodeRequests(log *state.StoreRequestLog) ([]byte, error) {
	data, err := json.Marshal(log)
	if err != nil {
		return nil, fmt.Errorf("encode the requests to the store: %w", err)
	}
	return state.Compress(data)
}

// DecodeRequests reads the content of RequestsKey.
func DecodeRequests(data []byte) (*state.StoreRequestLog, error) {
	text, err := state.Decompress(data)
	if err != nil {
		return nil, fmt.Errorf("decode the requests to the store: %w", err)
	}
	log := &state.StoreRequestLog{}
	if err := json.Unmarshal(text, log); err != nil {
		return nil, fmt.Errorf("decode the requests to the store: %w", err)
	}
	return log, nil
}
