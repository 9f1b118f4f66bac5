package config

import "github.com/fray-ml/fray/rl"

// Config is the configuration of a run. Fields are those of Keys, with their defaults where the document has none. Numbers of seconds
// are float64.
type Config struct {
	Names
	LaunchMode     rl.LaunchMode    `json:"launch_mode"`
	Seed           uint64           `json:"seed"`
	Recovery       rl.Recovery      `json:"recovery"`
	Out            string           `json:"out"`
	Journal        string           `json:"journal"`
	Dump           Dump             `json:"dump"`
	Data           Data             `json:"data"`
	RolloutWorker  RolloutWorker    `json:"rollout_worker"`
	TrajectoryPool TrajectoryPool   `json:"trajectory_pool"`
	Algorithm      Algorithm        `json:"algorithm"`
	TrainBatchPool TrainBatchPool   `json:"train_batch_pool"`
	TrainWorker    TrainWorker      `json:"train_worker"`
	Weight         Weight           `json:"weight"`
	Service        Service          `json:"service"`
	Validate       Validate         `json:"validate"`
	Resume         Resume           `json:"resume"`
	Logger         Logger           `json:"logger"`
	RuntimeMonitor RuntimeMonitor   `json:"runtime_monitor"`
	Roles          map[rl.Role]Role `json:"roles"`
}

// Names are those of a run.
type Names struct {
	ProjectName    string `json:"project_name"`
	ExperimentName string `json:"experiment_name"`
	Run            string `json:"run"` // "": by its configuration
}

// Dump says where easy_dump writes.
type Dump struct {
	Path string `json:"path"` // "": nowhere
}

// Data configures a data loader.
type Data struct {
	Type           string  `json:"type"` // "" of validate.data: no validation
	Seed           *uint64 `json:"seed"` // nil: the run's
	DataPath       string  `json:"data_path"`
	NumSamples     int     `json:"num_samples"`
	BatchSize      int     `json:"batch_size"`
	RepeatItem     int     `json:"repeat_item"`
	Passes         int     `json:"passes"`
	Shuffle        bool    `json:"shuffle"`
	KeepBatchOrder bool    `json:"keep_batch_order"`
	DropLast       bool    `json:"drop_last"`
	LeaseTTL       float64 `json:"lease_ttl"`
}

// RolloutWorker configures the rollout workers. Zero values are those of keys without a default.
type RolloutWorker struct {
	Type        string   `json:"type"`
	NumWorkers  int      `json:"num_workers"`
	Temperature *float64 `json:"temperature"`
	MaxTokens   int      `json:"max_tokens"`
	MaxLength   int      `json:"max_length"`
	StepTimeout float64  `json:"step_timeout"`
	Concurrency int      `json:"concurrency"`
	MaxTurns    int      `json:"max_turns"`
	Tools       []string `json:"tools"`
}

// TrajectoryPool configures the trajectory pools.
type TrajectoryPool struct {
	Type             string              `json:"type"`
	BatchSize        int                 `json:"batch_size"`
	GroupSize        int                 `json:"group_size"`
	KeyList          []string            `json:"key_list"`
	CheckBatchReady  rl.Readiness        `json:"check_batch_ready_function"`
	IncompleteGroups rl.IncompletePolicy `json:"incomplete_groups"`
	MaxBytes         int64               `json:"max_bytes"`
}

// Algorithm configures the algorithm processors.
type Algorithm struct {
	Type          string `json:"type"`
	BatchSize     int    `json:"batch_size"` // 0: the pool's
	UpdateFn      string `json:"update_fn"`
	PadTokenID    int    `json:"pad_token_id"`
	UseKLInReward bool   `json:"use_kl_in_reward"`
	KLPenalty     string `json:"kl_penalty"`
	KLCtrl        KLCtrl `json:"kl_ctrl"`
}

// KLCtrl chooses the coefficient of the KL penalty.
type KLCtrl struct {
	Type         string   `json:"type"`
	KLCoef       float64  `json:"kl_coef"`
	KLRewardCoef *float64 `json:"kl_reward_coef"` // nil: KLCoef
	TargetKL     float64  `json:"target_kl"`
	Horizon      float64  `json:"horizon"`
}

// TrainBatchPool configures the train batch pool.
type TrainBatchPool struct {
	Type      string `json:"type"`
	BatchSize int    `json:"batch_size"` // without effect
}

// TrainWorker configures the train workers.
type TrainWorker struct {
	Type               string `json:"type"`
	TotalTrainSteps    int    `json:"total_train_steps"`
	NumWorkers         int    `json:"num_workers"`
	CheckpointPath     string `json:"checkpoint_path"`
	SyncWeightPath     string `json:"sync_weight_path"`
	SaveFreq           int    `json:"save_freq"`
	RemovePreviousCkpt bool   `json:"remove_previous_ckpt"`
}

// Weight configures the weight sync controller.
type Weight struct {
	Type               string      `json:"type"`
	SyncMode           rl.SyncMode `json:"sync_mode"`
	StalenessThreshold int         `json:"staleness_threshold"`
	ValidateFreq       int         `json:"validate_freq"`
}

// Service configures the clients of the services.
type Service struct {
	TrainService     TrainService     `json:"train_service"`
	InferenceService InferenceService `json:"inference_service"`
}

// TrainService is what updates the model.
type TrainService struct {
	Backend    string         `json:"backend"`
	URL        string         `json:"url"`
	ModelTag   rl.ModelTag    `json:"model_tag"`
	Identifier string         `json:"identifier"`
	Class      string         `json:"class"`
	Config     map[string]any `json:"config"`
}

// InferenceService is what answers prompts.
type InferenceService struct {
	Backend             string         `json:"backend"`
	URL                 string         `json:"url"`
	ModelTag            rl.ModelTag    `json:"model_tag"`
	Model               string         `json:"model"`
	APIKey              string         `json:"api_key"`
	MaxRetries          int            `json:"max_retries"`
	FreezeForWeightSync bool           `json:"freeze_for_weight_sync"`
	Timeout             float64        `json:"timeout"`
	SyncTimeout         float64        `json:"sync_timeout"`
	Class               string         `json:"class"`
	Config              map[string]any `json:"config"`
}

// Validate configures validation.
type Validate struct {
	ValidateBeforeTrain bool `json:"validate_before_train"`
	Data                Data `json:"data"`
	Eval                Eval `json:"eval"`
}

// Eval configures the validator.
type Eval struct {
	Type string `json:"type"`
}

// Resume says where the run begins.
type Resume struct {
	Mode       rl.ResumeMode `json:"mode"`
	ResumePath string        `json:"resume_path"`
}

// Logger says where metrics go.
type Logger struct {
	Backend Backends `json:"backend"`
	Path    string   `json:"path"`
}

// RuntimeMonitor configures what the controller watches.
type RuntimeMonitor struct {
	ExceptionHandling ExceptionHandling `json:"exception_handling"`
	HealthCheck       HealthCheck       `json:"health_check"`
}

// ExceptionHandling is what becomes of reported errors.
type ExceptionHandling struct {
	Enabled       bool           `json:"enabled"`
	CheckInterval float64        `json:"check_interval"`
	Policy        rl.ErrorPolicy `json:"policy"`
}

// HealthCheck is how the roles are checked.
type HealthCheck struct {
	Enabled       bool    `json:"enabled"`
	CheckInterval float64 `json:"check_interval"`
	Timeout       float64 `json:"timeout"`
}

// Role is how many actors a role has and what they share processes with.
type Role struct {
	Count           *int   `json:"count"` // nil: by default
	ColocationGroup string `json:"colocation_group"`
}
