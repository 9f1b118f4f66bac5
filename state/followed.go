package state

// Origin is where a configuration came from.
type Origin struct {
	// Recorded names the recording of the configuration that Desired came of, by
	// which it follows values that become known or change; "": it stays as it is.
	Recorded string `json:"recorded,omitempty"`
	// Followed is the commit that it was taken from, nil where no repository is followed.
	Followed *Followed `json:"followed,omitempty"`
}

// Followed is the commit that a configuration was taken over from by a watch that follows a
// repository.
type Followed struct {
	Repository string `json:"repository"` // without credentials
	Ref        string `json:"ref"`
	Commit     string `json:"commit"`
	// Commits are those that came with it since the one before, newest first, and More how
	// many more there are.
	Commits []Commit `json:"commits,omitempty"`
	More    int      `json:"more,omitempty"`
}

// Commit is a commit for people. Its texts are one line each, without control characters.
type Commit struct {
	ID      string `json:"id"`
	Author  string `json:"author"`
	Subject string `json:"subject"`
	// Committer is who put it there, where that is not its author.
	Committer string `json:"committer,omitempty"`
}

// String is the commit in a line.
func (c *Commit) String() string {
	text := "commit " + c.ID[:min(len(c.ID), 12)] + " by " + c.Author
	if c.Committer != "" {
		text += ", committed by " + c.Committer
	}
	return text + ": " + c.Subject
}
