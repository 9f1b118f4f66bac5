package notices_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
)

const secretPath = "T0/B0/s3cretpath" // in the path of every receiver

var oncall = schema.Address{Kind: schema.KindNotification, Name: "oncall"}

func sample() notice.Notice {
	return notice.Notice{
		ID: "stack-1-1", Notification: oncall, Kind: schema.NoticeJobFailed, Status: notice.Firing, Stack: "stack", Workspace: "default",
		At: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Title: "Failed: job.train",
		Items: []notice.Item{{Addr: schema.Address{Kind: schema.KindJob, Name: "train"}, Text: "exit status 3 <!channel> `rm` @here & more"}},
		To:    []schema.Receiver{schema.ReceiverSlack},
	}
}

func reveal(t schema.Text) (string, error) { return t.Reveal(nil) }

func send(t *testing.T, n *schema.Notification, to schema.Receiver) *notices.Failure {
	t.Helper()
	return notices.NewSender(reveal, 2*time.Second, 5*time.Second).Send(t.Context(), n, sample(), to)
}

// A signed message is taken by the library of Standard Webhooks.
func TestWebhookIsSignedAsStandardWebhooksAre(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	var body []byte
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		header = r.Header
	}))
	defer server.Close()
	n := &schema.Notification{Addr: oncall, Webhook: &schema.WebhookReceiver{URL: schema.Secret(server.URL + "/" + secretPath), Secret: schema.Secret(secret)}}
	if failure := send(t, n, schema.ReceiverWebhook); failure != nil {
		t.Fatal(failure)
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(body, header); err != nil {
		t.Errorf("the library rejects the message: %v", err)
	}
	if err := verifier.Verify(append(body, ' '), header); err == nil {
		t.Error("the library takes a message that was changed")
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got["version"] != 1.0 || got["id"] != "stack-1-1" || got["notification"] != "notification.oncall" || got["to"] != nil {
		t.Errorf("got %s, want the version, the id and the notification, and not who is told", body)
	}
}

// What comes from outside is code in a message of Slack: nothing is mentioned or linked.
func TestSlackMessageIsInert(t *testing.T) {
	var got struct {
		Text string `json:"text"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _ = json.NewDecoder(r.Body).Decode(&got) }))
	defer server.Close()
	n := &schema.Notification{Addr: oncall, Slack: &schema.SlackReceiver{URL: schema.Secret(server.URL + "/" + secretPath)}}
	if failure := send(t, n, schema.ReceiverSlack); failure != nil {
		t.Fatal(failure)
	}
	want := ":warning: `Failed: job.train`\n• `job.train` `exit status 3 &lt;!channel&gt; 'rm' @here &amp; more`"
	if got.Text != want {
		t.Errorf("got  %q\nwant %q", got.Text, want)
	}
}

// Receivers that do not take a message: what is said of each, and that nothing of it is secret.
func TestFailures(t *testing.T) {
	answer := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "you asked for "+r.URL.Path) // nothing of that is repeated
		}
	}
	dead := func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return "http://" + l.Addr().String()
	}
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	of := func(h http.HandlerFunc) func(*testing.T) string {
		return func(t *testing.T) string {
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			return s.URL
		}
	}
	for _, test := range []struct {
		name, want string
		rejected   bool
		after      time.Duration
		url        func(*testing.T) string
	}{
		{"500", "it answers with status 500 (Internal Server Error)", false, 0, of(answer(500))},
		{"429", "it answers with status 429 (Too Many Requests)", false, 7 * time.Second, of(answer(429, "Retry-After", "7"))},
		{"a wait without end", "it answers with status 503 (Service Unavailable)", false, time.Hour, of(answer(503, "Retry-After", "999999999"))},
		{"400", "it answers with status 400 (Bad Request)", true, 0, of(answer(400))},
		{"404", "it answers with status 404 (Not Found)", false, 0, of(answer(404))},
		{"redirect", "it answers with a redirect (302), and redirects are not followed: write the address that it redirects to", false, 0, of(answer(302, "Location", "http://127.0.0.1:1/"+secretPath))},
		{"dead", "nothing listens at its address (connection refused)", false, 0, dead},
		{"slow", "it did not answer in time", false, 0, of(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-released:
			case <-r.Context().Done():
			}
		})},
		{"closes", "it closed the connection without an answer", false, 0, of(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		})},
		{"unknown host", "the host in its url ", false, 0, func(*testing.T) string { return "http://host.invalid" }},
		{"untrusted", "its certificate is not one that this machine trusts", false, 0, func(t *testing.T) string {
			s := httptest.NewUnstartedServer(answer(200))
			s.Config.ErrorLog = nil
			s.StartTLS()
			t.Cleanup(s.Close)
			return s.URL
		}},
		{"no TLS", "", false, 0, func(t *testing.T) string { return strings.Replace(of(answer(200))(t), "http://", "https://", 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &schema.Notification{Addr: oncall, Webhook: &schema.WebhookReceiver{URL: schema.Secret(test.url(t) + "/" + secretPath), Secret: schema.Secret("signs-it")}}
			failure := send(t, n, schema.ReceiverWebhook)
			if failure == nil {
				t.Fatal("it was taken")
			}
			if !strings.HasPrefix(failure.Text, test.want) || failure.Rejected != test.rejected || failure.After != test.after {
				t.Errorf("got %+v, want %q, rejected %v, after %s", failure, test.want, test.rejected, test.after)
			}
			for _, secret := range []string{"s3cret", "signs-it", "127.0.0.1", "host.invalid", "you asked"} {
				if strings.Contains(failure.Text, secret) {
					t.Errorf("the failure %q has %q in it", failure.Text, secret)
				}
			}
		})
	}
}

func TestCommandReadsTheNotice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "got")
	run := func(words ...string) *notices.Failure {
		n := &schema.Notification{Addr: oncall, Command: &schema.CommandReceiver{}}
		for _, word := range words {
			n.Command.Command = append(n.Command.Command, schema.Secret(word))
		}
		return notices.NewSender(reveal, 0, time.Second).Send(t.Context(), n, sample(), schema.ReceiverCommand)
	}
	if failure := run("sh", "-c", "cat > "+file); failure != nil {
		t.Fatal(failure)
	}
	data, err := os.ReadFile(file)
	var got notice.Notice
	if err != nil || json.Unmarshal(data, &got) != nil || got.ID != "stack-1-1" {
		t.Errorf("the command got %q, %v", data, err)
	}
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"sh", "-c", "echo s3cretpath >&2; exit 3"}, "its command exited with status 3"},
		{[]string{"sh", "-c", "sleep 1000 & wait"}, "its command did not end within 1s and was ended"},
		{[]string{"no-such-s3cretpath"}, "its command is not found on this machine"},
		{[]string{"/"}, "its command cannot be started"},
	} {
		if failure := run(test.words...); failure == nil || failure.Text != test.want {
			t.Errorf("%q: got %+v, want %q", test.words, failure, test.want)
		}
	}
}

// receiver records what it gets, and answers as it is told to.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []notice.Notice
	arrive chan notice.Notice
	answer func(notice.Notice) int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{arrive: make(chan notice.Notice, 1000), answer: func(notice.Notice) int { return http.StatusOK }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var n notice.Notice
		if err := json.NewDecoder(request.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		answer := r.answer
		r.mu.Unlock()
		code := answer(n)
		r.mu.Lock()
		r.got = append(r.got, n)
		r.mu.Unlock()
		w.WriteHeader(code)
		r.arrive <- n
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) next(t *testing.T) notice.Notice {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case n := <-r.arrive:
		return n
	case <-ctx.Done():
		t.Fatal("no notice has arrived within a minute")
		return notice.Notice{}
	}
}
