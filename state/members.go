package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// member is a member of a document that is compared by its value.
type member struct {
	name  string
	index []int
}

// membersOf are all members but the long ones and those that say which document it is.
func membersOf() []member {
	apart := []string{partDesired, partSlices, partJobs, "metering", "journal", versionName, writerName, "lineage", "serial", "epoch", "nonce"}
	var all []member
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Document]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && !slices.Contains(apart, name) {
			all = append(all, member{name: name, index: f.Index})
		}
	}
	return all
}

func (c *Changes) compareMembers(was, now *Document) error {
	before, after := reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem()
	for _, m := range membersOf() {
		b, a := before.FieldByIndex(m.index), after.FieldByIndex(m.index)
		if a.Kind() == reflect.Map {
			if err := c.compareMap(m.name, b, a); err != nil {
				return err
			}
			continue
		}
		if reflect.DeepEqual(b.Interface(), a.Interface()) {
			continue
		}
		value, err := jsonv2.Marshal(a.Interface(), writeOptions())
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if c.Members == nil {
			c.Members = map[string]jsontext.Value{}
		}
		c.Members[m.name] = value
	}
	return nil
}

func (c *Changes) compareMap(name string, was, now reflect.Value) error {
	if was.UnsafePointer() == now.UnsafePointer() {
		return nil
	}
	set := reflect.MakeMap(now.Type())
	for keys := now.MapRange(); keys.Next(); {
		before := was.MapIndex(keys.Key())
		if !before.IsValid() || !reflect.DeepEqual(before.Interface(), keys.Value().Interface()) {
			set.SetMapIndex(keys.Key(), keys.Value())
		}
	}
	gone := reflect.MakeMap(reflect.MapOf(now.Type().Key(), reflect.TypeFor[nothing]()))
	for keys := was.MapRange(); keys.Next(); {
		if !now.MapIndex(keys.Key()).IsValid() {
			gone.SetMapIndex(keys.Key(), reflect.ValueOf(nothing{}))
		}
	}
	var change mapChange
	for _, part := range []struct {
		of   reflect.Value
		into *jsontext.Value
	}{{set, &change.Set}, {gone, &change.Gone}} {
		if part.of.Len() == 0 {
			continue
		}
		value, err := jsonv2.Marshal(part.of.Interface(), writeOptions())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*part.into = value
	}
	if change.Set != nil || change.Gone != nil {
		if c.Maps == nil {
			c.Maps = map[string]mapChange{}
		}
		c.Maps[name] = change
	}
	return nil
}

func (c *Changes) changeMembers(d *Document) error {
	if len(c.Members) == 0 && len(c.Maps) == 0 {
		return nil
	}
	into := reflect.ValueOf(d).Elem()
	known := map[string]reflect.Value{}
	for _, m := range membersOf() {
		known[m.name] = into.FieldByIndex(m.index)
	}
	for name, value := range c.Members {
		field, ok := known[name]
		if !ok || field.Kind() == reflect.Map {
			return fmt.Errorf("there is no member %q", name)
		}
		field.SetZero()
		if err := jsonv2.Unmarshal(value, field.Addr().Interface(), readOptions(true)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, change := range c.Maps {
		field, ok := known[name]
		if !ok || field.Kind() != reflect.Map {
			return fmt.Errorf("there is no map %q", name)
		}
		if err := change.apply(field); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// apply changes a map, which nothing else has.
func (c mapChange) apply(field reflect.Value) error {
	if field.IsNil() {
		field.Set(reflect.MakeMap(field.Type()))
	}
	if c.Set != nil {
		set := reflect.New(field.Type())
		if err := jsonv2.Unmarshal(c.Set, set.Interface(), readOptions(true)); err != nil {
			return err
		}
		for keys := set.Elem().MapRange(); keys.Next(); {
			field.SetMapIndex(keys.Key(), keys.Value())
		}
	}
	if c.Gone != nil {
		gone := reflect.New(reflect.MapOf(field.Type().Key(), reflect.TypeFor[nothing]()))
		if err := jsonv2.Unmarshal(c.Gone, gone.Interface(), readOptions(true)); err != nil {
			return err
		}
		for keys := gone.Elem().MapRange(); keys.Next(); {
			field.SetMapIndex(keys.Key(), reflect.Value{})
		}
	}
	return nil
}
