package apply

import (
	"reflect"
	"testing"

	"github.com/fray-ml/fray/state"
)

// A report is a heartbeat if nothing of it is new but its time, its number and what tasks use.
func TestAHeartbeatHasNothingNew(t *testing.T) {
	of := reflect.TypeFor[state.HostReport]()
	for i := range of.NumField() {
		var a, b state.HostReport
		field := reflect.ValueOf(&b).Elem().Field(i)
		switch name := of.Field(i).Name; name {
		case "Seq", "At", "HostUsage":
			continue
		case "Task":
			a.Task, b.Task = &state.TaskReport{Attempt: 1}, &state.TaskReport{Attempt: 1}
			if !saysTheSame(&a, &b) {
				t.Error("another record of the same task is new")
			}
			b.Task = &state.TaskReport{Attempt: 2}
		case "PackedTasks":
			b.PackedTasks = []string{"a"}
		default:
			switch field.Kind() {
			case reflect.String:
				field.SetString("x")
			case reflect.Int, reflect.Int64:
				field.SetInt(1)
			case reflect.Uint64:
				field.SetUint(1)
			case reflect.Slice:
				field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			default:
				t.Fatalf("%s: a kind of field that this test does not know", name)
			}
		}
		if saysTheSame(&a, &b) {
			t.Errorf("another %s is nothing new", of.Field(i).Name)
		}
	}
}
