package cloud

import "time"

// Hosts are the machines behind the model: real processes or simulated ones. The
// calls for one machine come in order, one at a time over all machines, and
// without the model's lock; they should return soon.
type Hosts interface {
	// Start powers a machine on: its first boot, or a reboot with its disk kept.
	Start(m Machine)
	// Notice notifies a running machine of what will happen to it in [NoticeTime].
	Notice(id string, event Event)
	// Stop powers a machine off without warning. Its disk stays.
	Stop(id string)
	// Remove takes a machine away with its disk, powered on or not.
	Remove(id string)
}

// GuestAttributes is implemented by [Hosts] whose machines set guest attributes at
// metadata servers of their own.
type GuestAttributes interface {
	// GuestAttributes are a machine's, by "namespace/key".
	GuestAttributes(id string) map[string]string
}

// NoticeTime is how long before the end a machine learns of it.
const NoticeTime = 30 * time.Second

// Event is a closed set of what a machine is notified of.
type Event string

// The events.
const (
	EventPreemption  Event = "preemption"
	EventMaintenance Event = "maintenance"
)

// Machine is one host of a group as its hypervisor and metadata server know it.
type Machine struct {
	ID              string // unique for ever, such as "t1v-n-1f-w-0"; fit to be a file name
	Name            string // of the group: node, instance or instance group
	Instance        string // of the machine itself; the group's name where it is an instance
	Kind            Kind
	Zone            string
	Project         string
	Worker          int // index in the group
	Workers         int // machines in the group
	AcceleratorType string
	MachineType     string
	GPUs            int
	BootImage       string // as the caller named it
	RuntimeVersion  string
	Addresses       []string // internal ones of all workers, by index
	Labels          map[string]string
	Metadata        map[string]string
	ServiceAccount  string
	Preemptible     bool
	// Boot is how long a simulated machine takes from power on to running its
	// startup script.
	Boot time.Duration
	// Bad states that accelerators fail to initialize on this machine.
	Bad bool
}
