package fray_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// replacement is a private word of fray's that the field has another word for.
type replacement struct {
	words   []string // each in every form that is replaced; a phrase has spaces
	instead string   // what to write
	meaning string   // what it names, or why the word goes
}

// vocabulary is the list of words that no file may use: in prose, in identifiers, in
// messages, or in names of files.
func vocabulary() []replacement {
	return []replacement{
		{[]string{"weather"}, "zone health; of an emulated cloud: faults", "what is known of a zone that refused capacity"},
		{[]string{"births"}, "successes", "creations that a zone has granted"},
		{[]string{"vanguard"}, "half-open probes, probe limit", "the few slices that try a zone again"},
		{[]string{"young death"}, "early loss", "a slice that was lost soon after its creation"},
		{[]string{"hush", "hushed"}, "mass silence", "most hosts are silent at once"},
		{[]string{"twin", "twins"}, "copy, double buffer, counterpart", "names no role"},
		{[]string{"stirs", "rouse", "rouses", "woken"}, "dirty, mark dirty", "what must be evaluated again"},
		{[]string{"kin"}, "children, orphans", "jobs that a job launched"},
		{[]string{"doomed", "sentenced"}, "terminating, with a typed cause; victim", "a slice that goes, a job that yields"},
		{[]string{"mortal"}, "finite", "a job that ends by itself"},
		{[]string{"disowned", "let go of"}, "unmanaged, released", "what runs on and is no longer in the state"},
		{[]string{"hopeless", "gives up hope"}, "infeasible", "what cannot fit whatever ends"},
		{[]string{"guest", "guests", "lodger", "lodgers"}, "packed task", "a CPU task on a reservation's host"},
		{[]string{"lodging", "lodgings"}, "placement", "where a packed task runs"},
		{[]string{"kept room", "held back"}, "headroom, reserved capacity", "capacity for the head of the queue"},
		{[]string{"pulse", "pulses"}, "heartbeat", "how an agent shows that it lives"},
		{[]string{"desk"}, "state access", "how services change the state"},
		{[]string{"uptake", "owed"}, "value sync, late-bound values", "values that are known after apply"},
		{[]string{"carrier"}, "executor", "what carries a change out"},
		{[]string{"refusal", "refusals"}, "rejection; blocked change", "a request that was rejected, a change that a lifecycle rule blocks"},
		{[]string{"badness", "usefulness"}, "cost, score", "what a choice is ordered by"},
		{[]string{"depute", "deputed"}, "dial attempt, delegate", "names no role"},
		{[]string{"sift"}, "partition, filter", "the operation has a common name"},
		{[]string{"goodbye"}, "close", "the end of a connection"},
		{[]string{"greet", "greets", "greeted"}, "handshake", "the start of a connection"},
		{[]string{"shelf", "shelves"}, "bucket index, store", "names no role"},
		{[]string{"trouble", "troubles"}, "problem", "an operation that fails for now"},
		{[]string{"mishap", "mishaps"}, "fault", "what tests inject"},
		{[]string{"mend", "mends", "mended"}, "fix, repair", "one word for a change that removes a defect"},
		{[]string{"heal", "heals"}, "repair, recover", "one word for the end of a fault"},
		{[]string{"nobody", "somebody", "whoever", "whomever", "those who"}, "the role: the caller, another holder, clients that", "a sentence names its subject"},
		{[]string{"everything that"}, "the noun: all jobs that", "a sentence names its subject"},
		{[]string{"thing", "things", "stuff"}, "the noun: a resource, an object, a declaration", "a sentence names its subject"},
	}
}

// fieldTerms are terms of other people's APIs and of the field that have one of these
// words in them, and whose they are.
func fieldTerms() map[string]string {
	return map[string]string{
		"guest attribute":         "Compute Engine",
		"guest attributes":        "Compute Engine",
		"guest cpus":              "Compute Engine's machine types",
		"guest accelerator type":  "Compute Engine's machine types",
		"guest accelerator count": "Compute Engine's machine types",
		"guest accelerators":      "Compute Engine's instances",
		"map carrier":             "OpenTelemetry's propagation",
	}
}

// allowance is a word in a file that may have it.
type allowance struct{ file, word, why string }

// allowances name what users, tests or other programs call so, file by file.
func allowances() []allowance {
	const version1 = "a name in states of format 1"
	const former = "the changelog names what a name was"
	return []allowance{
		{"CHANGELOG.md", "weather", former},
		{"CHANGELOG.md", "disowned", former},
		{"CHANGELOG.md", "guests", former},
		{"CHANGELOG.md", "refusals", former},
		{"CHANGELOG.md", "mend", former},
		{"CHANGELOG.md", "goodbye", former},
		{"state/upgrade.go", "doomed", version1},
		{"state/version1_test.go", "doomed", version1},
		{"state/testdata/v1/full.json", "doomed", version1},
		{"state/termination_test.go", "doomed", version1},
	}
}

// vocabularyFile has the words themselves.
const vocabularyFile = "vocabulary_test.go"

// TestVocabulary finds replaced words in every file of the repository that people
// write. TestVocabulary/FOLDER checks one folder, TestVocabulary/root the files of
// the root.
func TestVocabulary(t *testing.T) {
	folders := map[string][]string{}
	for _, file := range writtenFiles(t) {
		folder, _, below := strings.Cut(file, "/")
		if !below {
			folder = "root"
		}
		folders[folder] = append(folders[folder], file)
	}
	if len(folders) < 30 {
		t.Fatalf("found %d folders: git lists too few files", len(folders))
	}
	find, checked := newFinder(vocabulary(), slices.Collect(maps.Keys(fieldTerms()))), 0
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		t.Run(folder, func(t *testing.T) {
			checkVocabulary(t, find, folders[folder])
			checked++
		})
	}
	if checked < len(folders) {
		return // -run leaves folders out
	}
	for term := range fieldTerms() {
		if !find.used[term] {
			t.Errorf("fieldTerms has %q, which no file uses: take it out", term)
		}
	}
	for _, allowed := range allowances() {
		if _, err := os.Stat(allowed.file); err != nil {
			t.Errorf("allowances has a file that is gone: %v", err)
		}
	}
}

func checkVocabulary(t *testing.T, find *finder, files []string) {
	t.Helper()
	may, used := map[[2]string]bool{}, map[[2]string]bool{}
	for _, allowed := range allowances() {
		if slices.Contains(files, allowed.file) {
			may[[2]string{allowed.file, allowed.word}] = true
		}
	}
	for _, name := range files {
		for _, u := range append(find.in(path.Base(name)), find.in(writtenText(t, name))...) {
			key := [2]string{name, u.word}
			if may[key] {
				used[key] = true
				continue
			}
			t.Errorf("%s:%d: %q: write %s (%s)", name, u.line, u.word, u.of.instead, u.of.meaning)
		}
	}
	for key := range may {
		if !used[key] {
			t.Errorf("allowances lets %s have %q, which it does not use: take it out", key[0], key[1])
		}
	}
}

// writtenFiles are the files that git tracks or would track, without those that
// programs write or that others have written.
func writtenFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatalf("list files: %v", err)
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		base := path.Base(name)
		switch {
		case name == vocabularyFile, base == "LICENSE", base == "opticks.txt":
		case strings.HasSuffix(base, ".pb.go"), strings.Contains(base, "_pb2"):
		case slices.Contains([]string{".sum", ".lock", ".svg", ".png", ".gz", ".fail"}, path.Ext(base)):
		default:
			files = append(files, name)
		}
	}
	return files
}

// writtenText is the text of a file, "" if it is none or was deleted.
func writtenText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return ""
	}
	return string(data)
}

// finder finds replaced words in a text.
type finder struct {
	phrases map[string][]phrase // by their first word
	used    map[string]bool     // the terms of the field that were found
}

// phrase is a sequence of words: replaced, or a term of the field where of is nil.
type phrase struct {
	text  string
	words []string
	of    *replacement
}

func newFinder(replaced []replacement, terms []string) *finder {
	f := &finder{phrases: map[string][]phrase{}, used: map[string]bool{}}
	add := func(text string, of *replacement) {
		words := strings.Fields(text)
		f.phrases[words[0]] = append(f.phrases[words[0]], phrase{text, words, of})
	}
	for i := range replaced {
		for _, word := range replaced[i].words {
			add(word, &replaced[i])
		}
	}
	for _, term := range terms {
		add(term, nil)
	}
	for _, list := range f.phrases {
		slices.SortFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return f
}

// usage is a replaced word in a line.
type usage struct {
	line int
	word string
	of   *replacement
}

// in finds the replaced words of a text. Identifiers are split into their words,
// phrases may go on in the next line of a comment, and the longest phrase counts.
func (f *finder) in(text string) []usage {
	var found []usage
	words := wordsOf(text)
	for i := 0; i < len(words); i++ {
		for _, p := range f.phrases[words[i].text] {
			if !startsWith(words[i:], p.words) {
				continue
			}
			if p.of == nil {
				f.used[p.text] = true
			} else {
				found = append(found, usage{words[i].line, p.text, p.of})
			}
			i += len(p.words) - 1
			break
		}
	}
	return found
}

func startsWith(words []word, of []string) bool {
	if len(words) < len(of) {
		return false
	}
	for i := range of {
		if words[i].text != of[i] || i > 0 && !words[i].follows {
			return false
		}
	}
	return true
}

// word is a word of a text or of an identifier, in lower case.
type word struct {
	text    string
	line    int
	follows bool // no more than space or a comment's mark is between it and the one before
}

// wordsOf splits a text: mailboxHTTPServer_name into mailbox, http, server, name.
func wordsOf(text string) []word {
	var words []word
	line, follows := 1, false
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case isLetter(c):
			end := wordEnd(text, i)
			words = append(words, word{strings.ToLower(text[i:end]), line, follows})
			i, follows = end, true
			continue
		case c == '\n':
			line++
		case c == '\\' && i+1 < len(text) && isLetter(text[i+1]):
			i++ // an escape, as in "\nfor"
			follows = false
		case !strings.ContainsRune(" \t/#_-", rune(c)):
			follows = false
		}
		i++
	}
	return words
}

// wordEnd is where the word that begins at start ends: before a capital that follows
// a small letter, and before the last of several capitals if a small letter follows.
func wordEnd(text string, start int) int {
	end := start + 1
	for end < len(text) && isLetter(text[end]) {
		small, capital := isSmall(text[end-1]), !isSmall(text[end])
		if small && capital {
			return end
		}
		if capital && end+1 < len(text) && isSmall(text[end+1]) {
			return end
		}
		end++
	}
	return end
}

func isSmall(c byte) bool { return 'a' <= c && c <= 'z' }

func isLetter(c byte) bool { return isSmall(c) || 'A' <= c && c <= 'Z' }

// TestVocabularyIsFound holds that the finder finds words in every form, and only
// them.
func TestVocabularyIsFound(t *testing.T) {
	find := newFinder(vocabulary(), slices.Collect(maps.Keys(fieldTerms())))
	for _, test := range []struct{ text, want string }{
		{"The weather of a zone.", "1:weather"},
		{"WEATHER, Weather", "1:weather 1:weather"},
		{"func (p *placer) zoneWeather() {}", "1:weather"},
		{"HTTPGuest, guestHTTP, guest_list, GUEST_LIST, x-guest, guest2", "1:guest 1:guest 1:guest 1:guest 1:guest 1:guest"},
		{`"a\nthing"`, "1:thing"},
		{`"\nobody" and \bthing`, "1:thing"},
		{"one\ntwo things\n\nthree `kin`", "2:things 4:kin"},
		{"for those who wait", "1:those who"},
		{"\t// for those\n\t// who wait", "1:those who"},
		{"isHeldBack", "1:held back"},
		{"let it go of", ""},
		{"of those. Who waits?", ""},
		{"whether, anything, nothing, kindly, guesthouse, mending, greeting, twinned", ""},
		{"GetGuestAttributes, guest-attributes, guestCpus", ""},
		{"a guest's attributes", "1:guest"},
		{"propagation.MapCarrier{}, carrier", "1:carrier"},
		{"no word of it", ""},
	} {
		var got []string
		for _, u := range find.in(test.text) {
			got = append(got, fmt.Sprintf("%d:%s", u.line, u.word))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
	for _, r := range vocabulary() {
		if r.instead == "" || r.meaning == "" {
			t.Errorf("%q has no replacement or no meaning", r.words)
		}
		for _, text := range r.words {
			if got := find.in("a " + text + " b"); len(got) != 1 || got[0].word != text {
				t.Errorf("%q is found as %v", text, got)
			}
			for _, own := range find.in(r.instead + ". " + r.meaning) {
				t.Errorf("the replacement of %q uses %q", text, own.word)
			}
		}
	}
}
