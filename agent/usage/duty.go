package usage

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/agent/usage/libtpu"
)

const (
	// libtpuAddress is where libtpu serves its metrics (tpu_info/metrics.py of
	// cloud-accelerator-diagnostics), and dutyMetric the duty cycle of a chip's TensorCores,
	// in percent.
	libtpuAddress = "localhost:8431"
	dutyMetric    = "tpu.runtime.tensorcore.dutycycle.percent"
	// chipsRetry is when it is asked again where nothing answered: a program that does not
	// use the chips yet, or a libtpu without metrics.
	chipsRetry = time.Minute
)

// chips reads how busy the chips of this host are.
type chips struct {
	address string // "": libtpuAddress
	client  libtpu.RuntimeMetricServiceClient
	again   time.Time
}

// duty is the mean part of the time in which chips compute, nil where that is not known.
func (c *chips) duty(ctx context.Context) *float64 {
	if time.Now().Before(c.again) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := c.read(ctx)
	if err != nil {
		c.again = time.Now().Add(chipsRetry)
		return nil
	}
	return value
}

func (c *chips) read(ctx context.Context) (*float64, error) {
	if c.client == nil {
		address := c.address
		if address == "" {
			address = libtpuAddress
		}
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		c.client = libtpu.NewRuntimeMetricServiceClient(conn)
	}
	response, err := c.client.GetRuntimeMetric(ctx, &libtpu.MetricRequest{MetricName: dutyMetric})
	if err != nil {
		return nil, err
	}
	sum, n := 0.0, 0
	for _, m := range response.GetMetric().GetMetrics() {
		switch v := m.GetGauge().GetValue().(type) {
		case *libtpu.Gauge_AsDouble:
			sum, n = sum+v.AsDouble, n+1
		case *libtpu.Gauge_AsInt:
			sum, n = sum+float64(v.AsInt), n+1
		}
	}
	if n == 0 {
		return nil, nil
	}
	mean := sum / float64(n) / 100
	return &mean, nil
}
