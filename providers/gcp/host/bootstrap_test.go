package host

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/providers/gcp/emulator/metadata"
	"github.com/fray-ml/fray/schema"
)

func TestStartupScript(t *testing.T) {
	for _, test := range []struct {
		name    string
		program []byte
		tools   []string // nil: all of this machine
	}{
		{"compressed", zipped(standIn), nil},
		{"as it is", []byte(standIn), nil},
		{"with curl", zipped(standIn), append(usualTools(), "curl")},
		{"without curl", zipped(standIn), append(usualTools(), "python3")},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := bootRigWith(t, test.program, bootAccount)
			if test.tools != nil {
				r.env = append(r.env, "PATH="+toolbox(t, test.tools...))
			}
			r.mustBoot()
			program := filepath.Join(r.root, "bin", "fray-"+r.sum)
			if got, err := os.ReadFile(program); err != nil || string(got) != standIn {
				t.Errorf("installed %q, %v; want the program", got, err)
			}
			want := fmt.Sprintf("agent --metadata --dir %[1]s/host --cache-dir %[1]s/cache --work-dir %[1]s/work", r.root)
			if got := r.agents(); len(got) != 1 || !strings.HasSuffix(got[0], want) {
				t.Errorf("started %q, want one %q", got, want)
			}
			if left := r.leftovers(); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestStartupScriptAgain(t *testing.T) {
	r := newBootRig(t)
	r.mustBoot()
	r.mustBoot()
	if n := r.wire.Count()[buckettest.ReqGet]; n != 1 {
		t.Errorf("the program was fetched %d times, want once", n)
	}
	if got := r.agents(); len(got) != 1 {
		t.Errorf("agents started: %q, want one", got)
	}
	log, err := os.ReadFile(filepath.Join(r.root, "boot.log"))
	if err != nil || strings.Count(string(log), "Z fray: running\n") != 2 {
		t.Errorf("boot.log is %q, %v; want two runs", log, err)
	}
}

func TestStartupScriptRepairsADamagedProgram(t *testing.T) {
	r := newBootRig(t)
	r.mustBoot()
	program := filepath.Join(r.root, "bin", "fray-"+r.sum)
	if err := os.Truncate(program, 10); err != nil {
		t.Fatal(err)
	}
	r.mustBoot()
	if got, err := os.ReadFile(program); err != nil || string(got) != standIn {
		t.Errorf("the program is %q, %v after the second boot", got, err)
	}
}

// TestStartupScriptRestartsTheAgent: the loop that does so is one for a machine.
func TestStartupScriptRestartsTheAgent(t *testing.T) {
	r := newBootRig(t)
	r.mustBoot()
	first := strings.Fields(r.agents()[0])
	pid, err := strconv.Atoi(first[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.eventually("another agent", func() bool { return len(r.agents()) == 2 })
	if second := strings.Fields(r.agents()[1]); second[0] != first[0] {
		t.Errorf("the second agent has parent %s, want the loop %s", second[0], first[0])
	}
}

func TestStartupScriptFails(t *testing.T) {
	curl, both := []string{"curl"}, []string{"curl", "python3"} // with both what they have to tell apart
	for _, test := range []struct {
		name    string
		fault   clienttest.Fault
		account string
		want    string
		with    []string
	}{
		{"not there", clienttest.Answer(404, "No such object"), bootAccount, "is not there; run fray apply again", both},
		{"no rights", clienttest.Answer(403, "denied"), bootAccount, bootAccount + " may not read gs://acme/rl/math (status 403); grant storage.objectViewer to it there", curl},
		{"passing", clienttest.Answer(503, "busy"), bootAccount, "answers 503", curl},
		{"other content", clienttest.Fault{Damage: clienttest.Flipped}, bootAccount, "has the SHA-256", curl},
		{"half a download", clienttest.Fault{Damage: clienttest.Half}, bootAccount, "was not fetched", both},
		{"half as if it were all", clienttest.Fault{Damage: clienttest.Short}, bootAccount, "has the SHA-256", curl},
		{"no answer", clienttest.Fault{}, bootAccount, "was not fetched", both},
		{"no account", clienttest.Fault{}, "", "no service account; give its slice one with service_account", curl},
	} {
		for _, with := range test.with {
			t.Run(test.name+" with "+with, func(t *testing.T) {
				t.Parallel()
				r := bootRigWith(t, zipped(standIn), test.account)
				r.env = append(r.env, "PATH="+toolbox(t, append(usualTools(), with)...))
				if test.account != "" {
					r.wire.Inject(buckettest.ReqGet, test.fault, test.fault)
				}
				output, err := r.boot()
				if err == nil {
					t.Errorf("the script is content with itself:\n%s", output)
				}
				r.wantStatus("failed: ", output)
				r.wantStatus(test.want, output)
				r.wantStatus("given up after 2 tries", output)
				if left, _ := filepath.Glob(filepath.Join(r.root, "bin", "*")); left != nil || r.leftovers() != nil {
					t.Errorf("left behind: %v %v", left, r.leftovers())
				}
				r.wire.Left(t)
				if test.account != "" {
					r.mustBoot() // the next one has better luck
				}
			})
		}
	}
}

// TestStartupScriptTriesAgain: what is not ready yet becomes so.
func TestStartupScriptTriesAgain(t *testing.T) {
	r := newBootRig(t)
	r.wire.Inject(buckettest.ReqGet, clienttest.Answer(404, ""))
	r.mustBoot()
	r.wire.Left(t)
}

func TestStartupScriptOnAForeignMachine(t *testing.T) {
	r := newBootRig(t)
	server := httptest.NewServer(metadata.New(metadata.Facts{Name: "mine"}))
	t.Cleanup(server.Close)
	output, err := r.boot("GCE_METADATA_HOST=" + server.Listener.Addr().String())
	if err == nil || !strings.Contains(output, "no metadata fray-agent-sha256; it was not made by fray") {
		t.Errorf("got %v and\n%s", err, output)
	}
}

func TestStartupScriptRejectsAProgramThatDoesNotRun(t *testing.T) {
	r := bootRigWith(t, zipped("\x7fELF of another machine"), bootAccount)
	output, err := r.boot()
	if err == nil {
		t.Error("the script is content with itself")
	}
	r.wantStatus("the program does not run on this", output)
}

// TestStartupScriptKilled: a boot that is cut off in the middle of its download
// leaves nothing that the next one would take for the program.
func TestStartupScriptKilled(t *testing.T) {
	r := newBootRig(t)
	r.wire.Inject(buckettest.ReqGet, clienttest.Fault{Damage: clienttest.Part, Stall: true})
	cmd := r.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.eventually("half of the program", func() bool { return len(r.leftovers()) > 0 })
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if got, err := os.ReadFile(filepath.Join(r.root, "status")); err != nil || !strings.HasPrefix(string(got), "fetching: gs://acme/rl/math/bundles/") {
		t.Errorf("status is %q, %v; want that it was fetching", got, err)
	}
	r.mustBoot()
	if left := r.leftovers(); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestStartupScriptTwiceAtOnce(t *testing.T) {
	r := newBootRig(t)
	var runs sync.WaitGroup
	for range 4 {
		cmd := r.command()
		runs.Go(func() {
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("startup script: %v\n%s", err, output)
			}
		})
	}
	runs.Wait()
	r.mustBoot()
	if n := r.wire.Count()[buckettest.ReqGet]; n != 1 {
		t.Errorf("the program was fetched %d times, want once", n)
	}
	if got := r.agents(); len(got) != 1 {
		t.Errorf("agents started: %q, want one", got)
	}
}

// TestStartupScriptUnderSystemd has a systemctl that notes what it is told.
func TestStartupScriptUnderSystemd(t *testing.T) {
	r := newBootRig(t)
	units, tools := t.TempDir(), toolbox(t, append(usualTools(), "curl")...)
	told := filepath.Join(units, "told")
	systemctl := "#!/bin/sh\necho \"$*\" >>" + told + "\n"
	if err := os.WriteFile(filepath.Join(tools, "systemctl"), []byte(systemctl), 0o700); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "PATH="+tools, "FRAY_UNIT_DIR="+units, "FRAY_SYSTEMD_DIR="+units)
	boot := func(want ...string) {
		t.Helper()
		if output, err := r.boot(); err != nil {
			t.Fatalf("startup script: %v\n%s", err, output)
		}
		got, err := os.ReadFile(told)
		if err != nil || string(got) != strings.Join(want, "\n")+"\n" {
			t.Errorf("systemctl was told %q, %v; want %q", got, err, want)
		}
		if err := os.Remove(told); err != nil {
			t.Fatal(err)
		}
	}
	fresh := []string{"daemon-reload", "kill --kill-who=main --signal=KILL fray-agent.service", "enable --now fray-agent.service"}
	boot(fresh...)
	unit, err := os.ReadFile(filepath.Join(units, "fray-agent.service"))
	for _, line := range []string{
		"ExecStart=" + r.root + "/bin/fray-" + r.sum + " agent --metadata ", "Restart=always\n", "Delegate=yes\n",
		"KillMode=process\n", "WantedBy=multi-user.target\n",
	} {
		if err != nil || !strings.Contains(string(unit), line) {
			t.Errorf("the unit lacks %q: %v\n%s", line, err, unit)
		}
	}
	boot("enable --now fray-agent.service")
	if err := os.WriteFile(filepath.Join(units, "fray-agent.service"), []byte("an older one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	boot(fresh...)
}

// TestStartupScriptHidesTheToken: arguments are everybody's to read.
func TestStartupScriptHidesTheToken(t *testing.T) {
	r := newBootRig(t)
	tools := toolbox(t, append(usualTools(), "curl")...)
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(t.TempDir(), "seen")
	wrapper := "#!/bin/sh\necho \"$*\" >>" + seen + "\nexec " + curl + " \"$@\"\n"
	if err := errors.Join(os.Remove(filepath.Join(tools, "curl")), os.WriteFile(filepath.Join(tools, "curl"), []byte(wrapper), 0o700)); err != nil {
		t.Fatal(err)
	}
	r.mustBoot("PATH=" + tools)
	got, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(got), "alt=media") || strings.Contains(string(got), "ya29") {
		t.Errorf("curl was called, %v, as\n%s", err, got)
	}
	asked := false
	for _, request := range r.wire.Requests(false) {
		asked = asked || request.Header.Get("Authorization") == "Bearer ya29.emulated-"+bootAccount
	}
	if !asked {
		t.Error("no request carries the machine's token")
	}
}

func TestBootstrapMetadata(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	b := Bootstrap{Store: "gs://acme/rl/a b?kms_key=k", AgentSHA256: sum, AgentVersion: "0.1.0", Workspace: "dev"}
	got, err := b.Metadata(schema.SliceSpec{Name: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fray-store": b.Store, "fray-slice": "s-1", "fray-agent-sha256": sum, "fray-agent-version": "0.1.0",
		"fray-workspace": "dev", "fray-agent-object": "b/acme/o/rl%2Fa%20b%2Fbundles%2F" + sum, "enable-guest-attributes": "TRUE",
		"fray-boot-upload": "b/acme/o?uploadType=media&kmsKeyName=k&name=rl%2Fa+b%2Fboot%2Fs-1%2F",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if size := len(got["startup-script"]); size == 0 || size > 256<<10 {
		t.Errorf("the startup script has %d bytes; a value may have 256 KiB", size)
	}
	for name, bad := range map[string]Bootstrap{
		"a directory":   {Store: "/home/me/.fray", AgentSHA256: sum},
		"no program":    {Store: "gs://acme"},
		"another hash":  {Store: "gs://acme", AgentSHA256: "abcd"},
		"no bucket":     {Store: "gs://", AgentSHA256: sum},
		"no store":      {AgentSHA256: sum},
		"another place": {Store: "s3://acme", AgentSHA256: sum},
	} {
		if _, err := bad.Metadata(schema.SliceSpec{Name: "s-1"}); err == nil {
			t.Errorf("%s makes metadata", name)
		}
	}
}
