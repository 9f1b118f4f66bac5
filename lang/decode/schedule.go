package decode

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/cron"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// schedule decodes when a job runs.
func (e *JobDecoder) schedule(j *schema.Job) {
	b := given(e.Decoder, e.instance, e.decl.Block.Child("schedule"))
	if b == nil {
		return
	}
	if e.decl.Group != nil {
		e.ErrorAt(b.Range(), "Schedule in a group", "The jobs of a job_group start together, and a schedule starts one by itself. Move the job out of the group, or remove the schedule.")
	}
	if x := e.decl.Block.Child("lifecycle"); x != nil && x.Attr("create_before_destroy") != nil {
		e.ErrorAt(x.Attr("create_before_destroy").Range, "Schedule with create_before_destroy", "A job with a schedule holds slices only while it runs, so that nothing can take over from it. Remove create_before_destroy.")
	}
	s := schema.Schedule{
		Timezone:         eval.Get(e, e.instance, b.Attr("timezone"), timezone, ""),
		Overlap:          eval.Get(e, e.instance, b.Attr("overlap"), as.OneOf(schema.OverlapSkip, schema.OverlapWait, schema.OverlapReplace), schema.OverlapSkip),
		Missed:           eval.Get(e, e.instance, b.Attr("missed"), as.OneOf(schema.MissedSkip, schema.MissedOnce, schema.MissedAll), schema.MissedOnce),
		StartingDeadline: eval.Get(e, e.instance, b.Attr("starting_deadline"), startingDeadline, 0),
		Suspend:          eval.Get(e, e.instance, b.Attr("suspend"), as.Bool, false),
	}
	s.Cron = eval.Get(e, e.instance, b.Attr("cron"), cronExpression, "")
	j.Schedule = &s
}

func timezone(v cty.Value) (string, error) {
	name, err := as.NotEmpty(v)
	if err == nil {
		_, err = cron.Zone(name)
	}
	if name == "UTC" { // which is what none means
		name = ""
	}
	return name, err
}

// cronExpression is an expression that has a time; in which zone does not matter for that.
func cronExpression(v cty.Value) (string, error) {
	text, err := as.NotEmpty(v)
	if err != nil {
		return "", err
	}
	times, err := cron.Parse(text, time.UTC)
	if err != nil {
		return "", fmt.Errorf("invalid cron expression %q: %w", text, err)
	}
	if times.Next(time.Unix(0, 0)).IsZero() {
		return "", fmt.Errorf("no day has the date of the cron expression %q", text)
	}
	return text, nil
}

// startingDeadline is at least what a controller needs to find that a run is due.
func startingDeadline(v cty.Value) (schema.Duration, error) {
	d, err := as.PositiveDuration(v)
	if err == nil && time.Duration(d) < cron.Punctual {
		return 0, errors.New("want at least 1m: a controller needs some time to begin a run")
	}
	return d, err
}

// beforeStop decodes the command that runs before tasks are ended.
func (e *JobDecoder) beforeStop(j *schema.Job) {
	b := given(e.Decoder, e.instance, e.decl.Block.Child("before_stop"))
	if b == nil {
		return
	}
	j.BeforeStop = &schema.BeforeStop{
		Command: eval.Get(e, e.instance, b.Attr("command"), hookCommand, nil),
		Timeout: eval.Get(e, e.instance, b.Attr("timeout"), as.PositiveDuration, schema.Duration(time.Minute)),
		On:      eval.Get(e, e.instance, b.Attr("on"), stopReasons, nil),
		Tasks:   eval.Get(e, e.instance, b.Attr("tasks"), as.OneOf(schema.HookOnAll, schema.HookOnFirst), schema.HookOnAll),
	}
}

func hookCommand(v cty.Value) ([]string, error) {
	words, err := as.StringList(v)
	if err == nil && (len(words) == 0 || words[0] == "") {
		return nil, errors.New("the hook has no program; write one, such as [\"python\", \"save.py\"]")
	}
	return words, err
}

// stopReasons is a list of stops, nil where it has all.
func stopReasons(v cty.Value) ([]schema.StopReason, error) {
	names, err := as.StringList(v)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("the hook would never run; name a stop, or remove the block")
	}
	known, of := schema.StopReasons(), as.OneOf(schema.StopReasons()...)
	var on []schema.StopReason
	for _, name := range names {
		why, err := of(cty.StringVal(name))
		if err != nil {
			return nil, err
		}
		on = append(on, why)
	}
	slices.Sort(on)
	if on = slices.Compact(on); len(on) == len(known) {
		return nil, nil
	}
	return on, nil
}
