package hostlink

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

// fill gives each field of a value another value than zero, so that a field which messages
// lack is found.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000+int64(*n), 7).UTC()))
		return
	case schema.Address:
		v.Set(reflect.ValueOf(schema.Address{Kind: schema.KindJob, Name: "train", Key: schema.IntKey(*n)}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	default:
		t.Fatalf("a report has a field of %s", v.Type())
	}
}

// sent is a message as it arrives.
func sent(t interface{ Fatal(...any) }, m *clusterapi.LiveReport) *clusterapi.LiveReport {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := &clusterapi.LiveReport{}
	if err := proto.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// Messages carry all fields of a report.
func TestMessagesCarryAllOfAReport(t *testing.T) {
	n := 0
	var full state.HostReport
	fill(t, reflect.ValueOf(&full).Elem(), &n)
	got, err := Merge(nil, sent(t, Whole(&full)))
	if err != nil {
		t.Fatal(err)
	}
	got.Slice, got.Host, got.Boot = full.Slice, full.Host, full.Boot // of the hello
	if !reflect.DeepEqual(got, &full) {
		t.Errorf("got %+v\nwant %+v", got, &full)
	}
	empty := state.HostReport{Slice: full.Slice, Host: full.Host, Boot: full.Boot, Seq: full.Seq + 1, At: full.At.Add(1)}
	if got, err = Merge(got, sent(t, Delta(&full, &empty))); err != nil || !reflect.DeepEqual(got, &empty) {
		t.Errorf("after all was taken back got %+v, %v\nwant %+v", got, err, &empty)
	}
}

// A heartbeat is a few bytes.
func TestHeartbeatIsSmall(t *testing.T) {
	n := 0
	var full state.HostReport
	fill(t, reflect.ValueOf(&full).Elem(), &n)
	full.Seq = uint64(time.Now().UnixMilli())
	next := full
	next.Seq, next.At = full.Seq+1, full.At.Add(time.Second)
	m := Delta(&full, &next)
	size := proto.Size(&clusterapi.HostMessages{Messages: []*clusterapi.HostMessage{{Number: 9, Report: m}}})
	if !IsHeartbeat(m) || size > 24 {
		t.Errorf("a heartbeat is %d bytes: %v", size, m)
	}
}

// What changes make of what changed before is the report that was sent.
func TestChangesMakeTheReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var known *state.HostReport
		base := state.HostReport{}
		for seq := range uint64(rapid.IntRange(1, 12).Draw(t, "reports")) {
			r := state.HostReport{Seq: seq + 1}
			if known != nil {
				r = *known
				r.Seq = seq + 1
			}
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0:
				r.Task = nil
			case 1:
				r.Task = &state.TaskReport{State: schema.TaskRunning, Attempt: rapid.IntRange(0, 2).Draw(t, "attempt")}
			case 2:
				r.Notice = rapid.SampledFrom([]string{"", "preempted"}).Draw(t, "notice")
			case 3:
				r.PackedTasks = rapid.SliceOfN(rapid.SampledFrom([]string{"p", "q"}), 1, 2).Draw(t, "packed")
			case 4:
				r.Generation = rapid.Int64Range(0, 3).Draw(t, "generation")
			case 5:
				r.Address = rapid.SampledFrom([]string{"", "10.0.0.1"}).Draw(t, "address")
			}
			m := Delta(&base, &r)
			if known == nil {
				m = Whole(&r)
			}
			m = sent(t, m)
			if IsHeartbeat(m) {
				continue
			}
			if known != nil && (!Fits(known, m) || Fits(&state.HostReport{Seq: 1 << 40}, m)) {
				t.Fatalf("%v does not fit number %d alone", m, known.Seq)
			}
			got, err := Merge(known, m)
			if err != nil || !reflect.DeepEqual(got, &r) {
				t.Fatalf("got %+v, %v, want %+v", got, err, r)
			}
			known, base = got, r
		}
	})
}
