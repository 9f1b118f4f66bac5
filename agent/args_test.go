package agent

import (
	"reflect"
	"testing"
)

// TestArgsRoundTrip fills every field, so that a new one cannot be forgotten.
func TestArgsRoundTrip(t *testing.T) {
	var want Args
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("value of " + v.Type().Field(i).Name)
		case reflect.Int:
			f.SetInt(int64(i))
		case reflect.Slice:
			f.Set(reflect.ValueOf([]int{0, i}))
		case reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("field %s has a kind that this test does not know", v.Type().Field(i).Name)
		}
	}
	got, err := ParseArgs(want.Flags())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}
