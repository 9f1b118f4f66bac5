package rl

import (
	"fmt"
	"slices"
	"strings"
)

// UnknownError is a word that is not one of a closed set.
type UnknownError struct {
	What string // "sync mode"
	Got  string
	Want []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %q: want %s", e.What, e.Got, strings.Join(e.Want, ", "))
}

// parse returns a text as one of the words of a set.
func parse[T ~string](what, text string, set []T) (T, error) {
	if slices.Contains(set, T(text)) {
		return T(text), nil
	}
	want := make([]string, len(set))
	for i, word := range set {
		want[i] = string(word)
	}
	return "", &UnknownError{What: what, Got: text, Want: want}
}

// Role is what a process of a run does. Its value begins the names of its actors.
type Role string

// The roles. The first nine are the NexRLRole of the guide.
const (
	RolloutWorker        Role = "rollout_worker"
	TrainWorker          Role = "train_worker"
	AlgorithmProcessor   Role = "algorithm_processor"
	TrajectoryPool       Role = "trajectory_pool"
	TrainBatchPool       Role = "train_batch_pool"
	WeightSyncController Role = "weight_sync_controller"
	DataLoader           Role = "data_loader"
	ValidateDataLoader   Role = "validate_dataloader"
	Validator            Role = "validator"
	ActivityTracker      Role = "activity_tracker"
	Controller           Role = "controller"
	ExperimentLogger     Role = "experiment_logger"
	TrainService         Role = "train_service"
	InferenceService     Role = "inference_service"
)

// Roles are all roles, in the order of their declaration.
func Roles() []Role {
	return []Role{
		RolloutWorker, TrainWorker, AlgorithmProcessor, TrajectoryPool, TrainBatchPool, WeightSyncController, DataLoader,
		ValidateDataLoader, Validator, ActivityTracker, Controller, ExperimentLogger, TrainService, InferenceService,
	}
}

// ParseRole returns the role of a name.
func ParseRole(text string) (Role, error) { return parse("role", text, Roles()) }

// Indexed reports whether a role's actors always have an index in their name: rollout_worker_0. A
// trajectory pool has one only if there are several.
func (r Role) Indexed() bool {
	switch r {
	case RolloutWorker, TrainWorker, AlgorithmProcessor, TrainService, InferenceService:
		return true
	case TrajectoryPool, TrainBatchPool, WeightSyncController, DataLoader, ValidateDataLoader, Validator, ActivityTracker, Controller,
		ExperimentLogger:
	}
	return false
}

// ActorName is the name of actor index of count of a role.
func ActorName(role Role, index, count int) string {
	if role.Indexed() || role == TrajectoryPool && count > 1 {
		return fmt.Sprintf("%s_%d", role, index)
	}
	return string(role)
}

// Outcome is the answer to a trajectory that was put.
type Outcome string

// The outcomes of put_trajectory.
const (
	Success   Outcome = "success"
	Fail      Outcome = "fail"       // it is not stored, and the same again would not be either
	ReRollout Outcome = "re-rollout" // it is not stored: roll the same task out again
)

// ParseOutcome returns the outcome of a word.
func ParseOutcome(text string) (Outcome, error) {
	return parse("outcome", text, []Outcome{Success, Fail, ReRollout})
}

// TaskOutcome is how a worker ended a task.
type TaskOutcome string

// The outcomes of a task. TaskNone is a task from which no trajectory came.
const (
	TaskSuccess TaskOutcome = "success"
	TaskFail    TaskOutcome = "fail"
	TaskNone    TaskOutcome = "none"
)

// ParseTaskOutcome returns the outcome of a word.
func ParseTaskOutcome(text string) (TaskOutcome, error) {
	return parse("outcome of a task", text, []TaskOutcome{TaskSuccess, TaskFail, TaskNone})
}

// Route is where a task's trajectory goes.
type Route string

// The routes: to the trajectory pool and to the validator.
const (
	RouteTrain    Route = "train"
	RouteValidate Route = "validate"
)

// ParseRoute returns the route of a word.
func ParseRoute(text string) (Route, error) {
	return parse("route", text, []Route{RouteTrain, RouteValidate})
}
