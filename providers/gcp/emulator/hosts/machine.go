package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/metadata"
)

// machine is one emulated host.
type machine struct {
	config Config
	spec   cloud.Machine
	dir    string

	mu     sync.Mutex
	server *metadata.Server // nil: the machine is off
	serves *http.Server
	booted sync.WaitGroup // the startup script and the server of this boot
}

func newMachine(c Config, m cloud.Machine) *machine {
	return &machine{config: c, spec: m, dir: filepath.Join(c.Dir, m.ID)}
}

// Names in a machine's directory.
const (
	rootDir    = "root"       // FRAY_ROOT of the startup script
	consoleLog = "serial.log" // what the machine prints while it boots
	scriptFile = "startup-script"
)

// start powers the machine on, with the metadata that it has by now; one that is
// on stays as it is.
func (m *machine) start(now cloud.Machine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		return nil
	}
	m.spec = now
	root := filepath.Join(m.dir, rootDir)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("make disk: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start metadata server: %w", err)
	}
	m.server = metadata.New(m.facts())
	m.serves = &http.Server{Handler: m.server}
	serves := m.serves
	m.booted.Go(func() { _ = serves.Serve(listener) }) // ends with stop
	if err := m.boot(root, listener.Addr().String()); err != nil {
		return errors.Join(err, m.stopLocked())
	}
	return nil
}

// boot runs the startup script, if there is one, in a session of its own.
func (m *machine) boot(root, metadataAddress string) error {
	script := m.spec.Metadata["startup-script"]
	if script == "" {
		return nil
	}
	if err := m.installDriver(); err != nil {
		return err
	}
	file := filepath.Join(m.dir, scriptFile)
	if err := writeProgram(file, script); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	console, err := os.OpenFile(filepath.Join(m.dir, consoleLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	defer console.Close()
	cmd := exec.Command(file)
	if !strings.HasPrefix(script, "#!") {
		cmd = exec.Command("/bin/sh", file)
	}
	cmd.Dir = "/"
	cmd.Env = m.environ(root, metadataAddress)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	m.booted.Go(func() {
		if err := cmd.Wait(); err != nil {
			m.config.Log.Debug("startup script ended", "machine", m.spec.ID, "error", err)
		}
	})
	return nil
}

// writeProgram writes a script that is run next. No process is started meanwhile: it would hold the open file until it
// runs its own program, and the kernel runs no file that is open for writing.
func writeProgram(file, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(script), 0o700)
}

// environ is what a machine's processes start with: of this machine only what
// programs cannot do without.
func (m *machine) environ(root, metadataAddress string) []string {
	path := cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")
	if m.hasDriver() {
		path = filepath.Join(m.dir, driverDir) + ":" + path
	}
	env := []string{
		"HOME=" + root, "LANG=C.UTF-8", "PATH=" + path,
		"FRAY_ROOT=" + root, "FRAY_UNIT_DIR=", "FRAY_BOOT_PAUSE=1",
		"GCE_METADATA_HOST=" + metadataAddress, "STORAGE_EMULATOR_HOST=" + m.config.Storage,
		"FRAY_GCP_ENDPOINT=" + m.config.Endpoint,
		markVariable + "=" + diskMark(m.dir),
	}
	if m.spec.Bad {
		env = append(env, badVariable+"=1")
	}
	for _, name := range []string{"GOCOVERDIR", "GORACE", "TMPDIR", "SSL_CERT_FILE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, m.config.Env...)
}

// badVariable marks for a rehearsed task that its machine's accelerators are broken:
// it may complain as libtpu would.
const badVariable = "EMULATED_TPU_BROKEN"

// facts are what the metadata server reports.
func (m *machine) facts() metadata.Facts {
	id := fnv.New64a()
	_, _ = id.Write([]byte(m.spec.ID)) // never fails
	attributes := map[string]string{}
	maps.Copy(attributes, m.spec.Metadata)
	if m.spec.Kind == cloud.KindNode {
		maps.Copy(attributes, m.workerAttributes())
	}
	if m.spec.Kind == cloud.KindGroup {
		attributes["created-by"] = fmt.Sprintf("projects/1/zones/%s/instanceGroupManagers/%s", m.spec.Zone, m.spec.Name)
	}
	return metadata.Facts{
		ID: id.Sum64() >> 1, Name: m.spec.Instance, Project: m.spec.Project, Zone: m.spec.Zone,
		Address: m.address(m.spec.Worker), MachineType: m.spec.MachineType, Preemptible: m.spec.Preemptible,
		Account: cmp.Or(m.spec.ServiceAccount, "1-compute@developer.gserviceaccount.com"), Attributes: attributes,
	}
}

// workerAttributes are those that Cloud TPU gives a machine of a node, and that
// machines of instance groups lack.
func (m *machine) workerAttributes() map[string]string {
	endpoints := make([]string, m.spec.Workers)
	for i := range endpoints {
		endpoints[i] = "unknown:unknown:" + m.address(i)
	}
	return map[string]string{
		"agent-worker-number":      strconv.Itoa(m.spec.Worker),
		"worker-network-endpoints": strings.Join(endpoints, ","),
		"accelerator-type":         m.spec.AcceleratorType,
		"instance-id":              m.spec.Name,
		"tpu-env": fmt.Sprintf("ACCELERATOR_TYPE: '%s'\nNODE_ID: '%s'\nWORKER_ID: '%d'\nZONE: '%s'\n",
			m.spec.AcceleratorType, m.spec.Name, m.spec.Worker, m.spec.Zone),
	}
}

// address is where a worker of the group is. The cloud's addresses are of no
// use here unless they are loopback ones.
func (m *machine) address(worker int) string {
	if worker < len(m.spec.Addresses) {
		return loopback(m.spec.Addresses[worker])
	}
	return "127.0.0.1"
}

// notice notifies the machine of what will happen to it.
func (m *machine) notice(event cloud.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return
	}
	switch event {
	case cloud.EventPreemption:
		m.server.Preempt()
	case cloud.EventMaintenance:
		m.server.Maintain("TERMINATE_ON_HOST_MAINTENANCE")
	}
}

func (m *machine) guestAttributes() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return nil
	}
	return m.server.GuestAttributes()
}

// stop cuts the machine's power: nothing of it is left when it returns.
func (m *machine) stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopLocked()
}

func (m *machine) stopLocked() error {
	if m.server == nil {
		return nil
	}
	err := powerOff(diskMark(m.dir))
	m.server.Close()
	err = errors.Join(err, m.serves.Close())
	m.server, m.serves = nil, nil
	m.booted.Wait()
	return err
}
