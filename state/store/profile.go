package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/profile"
)

// ProfilesPrefix is where profiles of tasks are kept, the last ones of each job.
const ProfilesPrefix = "profiles/"

// keptProfiles is how many profiles of one job are kept.
const keptProfiles = 10

// ProfileName names a profile of a job by what it is of. Its text is the last part of a key.
type ProfileName struct {
	Attempt, Task int
	At            time.Time
	Kind          profile.Kind
	Format        profile.Format
	mark          string // tells profiles of one millisecond apart
}

// NewProfileName is a name that no other profile has.
func NewProfileName(attempt, task int, at time.Time, h profile.Header) ProfileName {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return ProfileName{Attempt: attempt, Task: task, At: at.UTC(), Kind: h.Kind, Format: h.Format, mark: hex.EncodeToString(random[:])}
}

// profileTime sorts as times do.
const profileTime = "20060102T150405.000Z"

// String is the name as a part of a key.
func (n ProfileName) String() string {
	return fmt.Sprintf("%s-%d-%d-%s-%s%s", n.At.Format(profileTime), n.Attempt, n.Task, n.mark, n.Kind, n.Format.Ext())
}

// ParseProfileName reads a name, false if it is none.
func ParseProfileName(text string) (ProfileName, bool) {
	format, known := profile.FormatOf(text)
	parts := strings.Split(strings.TrimSuffix(text, format.Ext()), "-")
	if !known || len(parts) != 5 {
		return ProfileName{}, false
	}
	at, err := time.Parse(profileTime, parts[0])
	attempt, noAttempt := strconv.Atoi(parts[1])
	task, noTask := strconv.Atoi(parts[2])
	n := ProfileName{Attempt: attempt, Task: task, At: at, Kind: profile.Kind(parts[4]), Format: format, mark: parts[3]}
	if err != nil || noAttempt != nil || noTask != nil || !slices.Contains(profile.Kinds(), n.Kind) || n.String() != text {
		return ProfileName{}, false
	}
	return n, true
}

func profilesOf(job string) string { return ProfilesPrefix + keyPart(job) + "/" }

// ListProfiles lists the profiles of a job, named by its id, the newest first.
func ListProfiles(ctx context.Context, s Store, job string) ([]ProfileName, error) {
	listed, err := s.List(ctx, profilesOf(job))
	if err != nil {
		return nil, fmt.Errorf("list profiles of %s: %w", job, err)
	}
	var names []ProfileName
	for _, o := range slices.Backward(listed) {
		if n, ok := ParseProfileName(strings.TrimPrefix(o.Key, profilesOf(job))); ok {
			names = append(names, n)
		}
	}
	return names, nil
}

// ReadProfile reads a profile of a job.
func ReadProfile(ctx context.Context, s Store, job string, n ProfileName) ([]byte, error) {
	o, err := s.Get(ctx, profilesOf(job)+n.String())
	if err != nil {
		return nil, fmt.Errorf("read a profile of %s: %w", job, err)
	}
	return o.Data, nil
}

// KeepProfile stores a profile of a job, and removes the oldest ones beyond those that are kept.
func KeepProfile(ctx context.Context, s Store, job string, n ProfileName, data []byte) error {
	if _, err := s.Put(ctx, profilesOf(job)+n.String(), data, Absent); err != nil {
		return fmt.Errorf("store a profile of %s: %w", job, err)
	}
	names, err := ListProfiles(ctx, s, job)
	if err != nil {
		return err
	}
	for _, old := range names[min(keptProfiles, len(names)):] {
		if err := s.Delete(ctx, profilesOf(job)+old.String()); err != nil {
			return fmt.Errorf("remove an old profile of %s: %w", job, err)
		}
	}
	return nil
}
