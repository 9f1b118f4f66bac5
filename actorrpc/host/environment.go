package host

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/clusterapi"
)

// Variables of a task's environment, which its agent sets.
const (
	envHostAddress = "FRAY_HOST_ADDRESS"
	envPort        = "FRAY_PORT_ACTOR"
	envNamespace   = "FRAY_NAMESPACE"
	envIdentity    = "FRAY_ACTOR_IDENTITY" // path of a PEM file
	envCluster     = "FRAY_CLUSTER_ADDRESS"
	envToken       = "FRAY_CLUSTER_TOKEN"
	envJob         = "FRAY_JOB_ID"
	envTask        = "FRAY_TASK_INDEX"
	envTasks       = "FRAY_NUM_TASKS"
	envGrace       = "FRAY_STOP_GRACE" // seconds
	envClass       = "FRAY_ACTOR_CLASS"
	envTermination = "FRAY_TERMINATION_FILE"
	envArgs        = "FRAY_ACTOR_ARGS"    // JSON object
	envNames       = "FRAY_ACTOR_NAMES"   // JSON list
	envOptions     = "FRAY_ACTOR_OPTIONS" // JSON object: max_concurrency
)

// FromEnvironment is the configuration of a task of a fray cluster, by its
// variables (getenv is os.Getenv); outside of one it is that of this machine. The
// connection to the cluster lasts until release.
func FromEnvironment(getenv func(string) string) (cfg Config, release func(), err error) {
	release = func() {}
	cfg.Namespace, cfg.JobID, cfg.Advertise = getenv(envNamespace), getenv(envJob), getenv(envHostAddress)
	numbers := map[string]*int{envPort: &cfg.Port, envTask: &cfg.Task}
	for name, into := range numbers {
		if text := getenv(name); text != "" {
			if *into, err = strconv.Atoi(text); err != nil {
				return Config{}, nil, fmt.Errorf("%s is %q: want a number", name, text)
			}
		}
	}
	if text := getenv(envGrace); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds < 0 {
			return Config{}, nil, fmt.Errorf("%s is %q: want seconds", envGrace, text)
		}
		cfg.Grace = max(time.Duration(seconds*float64(time.Second))-returnTime, time.Millisecond)
	}
	if file := getenv(envIdentity); file != "" {
		if cfg.Identity, err = actorrpc.LoadIdentity(file); err != nil {
			return Config{}, nil, err
		}
	}
	// On a host that others reach all its addresses are served, for which an
	// identity is needed; a simulated host is a loopback address.
	if ip := net.ParseIP(cfg.Advertise); ip != nil && ip.IsLoopback() || cfg.Identity == nil {
		cfg.Host = cfg.Advertise
	}
	address := getenv(envCluster)
	if address == "" {
		return cfg, release, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), grpc.WithPerRPCCredentials(bearer(getenv(envToken))))
	if err != nil {
		return Config{}, nil, fmt.Errorf("connect to the cluster at %s: %w", address, err)
	}
	cfg.Metadata = clusterapi.NewMetadataClient(conn)
	return cfg, func() { conn.Close() }, nil
}

// bearer is a job's token. It goes to the agent of its host, without TLS.
type bearer string

var _ credentials.PerRPCCredentials = bearer("")

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (b bearer) RequireTransportSecurity() bool { return false }
