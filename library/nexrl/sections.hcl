# Written by go test ./rl/config -update, from the keys of the configuration. Do not edit.

variable "algorithm" {
  type = object({
    batch_size = optional(number)
    kl_ctrl = optional(object({
      horizon        = optional(number)
      kl_coef        = optional(number)
      kl_reward_coef = optional(number)
      target_kl      = optional(number)
      type           = optional(string)
    }), {})
    kl_penalty       = optional(string)
    pad_token_id     = optional(number)
    type             = optional(string)
    update_fn        = optional(string)
    use_kl_in_reward = optional(bool)
    args             = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section algorithm of the configuration"

  validation {
    condition     = var.algorithm.type == null ? true : contains(["mock", "grpo"], var.algorithm.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.algorithm.type))
    error_message = "algorithm.type: want mock, grpo, or module:Class."
  }

  validation {
    condition     = var.algorithm.batch_size == null ? true : var.algorithm.batch_size >= 1 && floor(var.algorithm.batch_size) == var.algorithm.batch_size
    error_message = "algorithm.batch_size: want a whole number from 1."
  }

  validation {
    condition     = var.algorithm.pad_token_id == null ? true : var.algorithm.pad_token_id >= 0 && floor(var.algorithm.pad_token_id) == var.algorithm.pad_token_id
    error_message = "algorithm.pad_token_id: want a whole number from 0."
  }

  validation {
    condition     = var.algorithm.kl_penalty == null ? true : contains(["kl", "abs", "mse", "low_var_kl"], var.algorithm.kl_penalty)
    error_message = "algorithm.kl_penalty: want kl, abs, mse, low_var_kl."
  }

  validation {
    condition     = var.algorithm.kl_ctrl.type == null ? true : contains(["fixed", "adaptive"], var.algorithm.kl_ctrl.type)
    error_message = "algorithm.kl_ctrl.type: want fixed, adaptive."
  }

  validation {
    condition     = var.algorithm.kl_ctrl.target_kl == null ? true : var.algorithm.kl_ctrl.target_kl > 0
    error_message = "algorithm.kl_ctrl.target_kl: want a number above 0."
  }

  validation {
    condition     = var.algorithm.kl_ctrl.horizon == null ? true : var.algorithm.kl_ctrl.horizon > 0
    error_message = "algorithm.kl_ctrl.horizon: want a number above 0."
  }

  validation {
    condition     = var.algorithm.kl_ctrl.kl_reward_coef == null || var.algorithm.kl_ctrl.kl_coef == null
    error_message = "algorithm.kl_ctrl.kl_reward_coef: it is another name of kl_coef: write one of the two."
  }

  validation {
    condition     = can(keys(var.algorithm.args)) ? length(keys(var.algorithm.args)) == 0 || strcontains(coalesce(var.algorithm.type, "-"), ":") : false
    error_message = "algorithm.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.algorithm.args)) ? alltrue([for key in keys(var.algorithm.args) : !contains(["batch_size", "kl_ctrl", "kl_penalty", "pad_token_id", "type", "update_fn", "use_kl_in_reward"], key)]) : true
    error_message = "algorithm.args: write the keys of the section beside args, not in it."
  }
}

variable "data" {
  type = object({
    batch_size       = optional(number)
    data_path        = optional(string)
    drop_last        = optional(bool)
    keep_batch_order = optional(bool)
    lease_ttl        = optional(number)
    num_samples      = optional(number)
    passes           = optional(number)
    repeat_item      = optional(number)
    seed             = optional(number)
    shuffle          = optional(bool)
    type             = optional(string)
    args             = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section data of the configuration"

  validation {
    condition     = var.data.type == null ? true : contains(["mock", "jsonl", "directory", "torch"], var.data.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.data.type))
    error_message = "data.type: want mock, jsonl, directory, torch, or module:Class."
  }

  validation {
    condition     = var.data.seed == null ? true : var.data.seed >= 0 && floor(var.data.seed) == var.data.seed
    error_message = "data.seed: want a whole number from 0."
  }

  validation {
    condition     = var.data.data_path == null ? true : !strcontains(var.data.data_path, "://") || strcontains(coalesce(var.data.type, "-"), ":")
    error_message = "data.data_path: want a path that every host of the run sees."
  }

  validation {
    condition     = var.data.num_samples == null ? true : var.data.num_samples >= 1 && floor(var.data.num_samples) == var.data.num_samples
    error_message = "data.num_samples: want a whole number from 1."
  }

  validation {
    condition     = var.data.batch_size == null ? true : var.data.batch_size >= 1 && floor(var.data.batch_size) == var.data.batch_size
    error_message = "data.batch_size: want a whole number from 1."
  }

  validation {
    condition     = var.data.repeat_item == null ? true : var.data.repeat_item >= 1 && floor(var.data.repeat_item) == var.data.repeat_item
    error_message = "data.repeat_item: want a whole number from 1."
  }

  validation {
    condition     = var.data.passes == null ? true : var.data.passes >= 1 && floor(var.data.passes) == var.data.passes
    error_message = "data.passes: want a whole number from 1."
  }

  validation {
    condition     = var.data.lease_ttl == null ? true : var.data.lease_ttl > 0
    error_message = "data.lease_ttl: want a number of seconds above 0."
  }

  validation {
    condition     = var.data.type == null ? true : var.data.type == "mock" || strcontains(var.data.type, ":") || var.data.data_path != null
    error_message = "data.data_path: name the file or directory of the items, which all types but mock read."
  }

  validation {
    condition     = var.data.data_path == null || var.data.type == null || var.data.type == "mock" || !var.check_paths ? true : strcontains(var.data.data_path, "://") || (var.data.type == "jsonl" ? try(fileexists(var.data.data_path), false) : var.data.type == "directory" ? !can(fileexists(var.data.data_path)) : try(fileexists(var.data.data_path), true))
    error_message = "data.data_path: there is no such file or directory; jsonl reads a file, directory a directory. Write check_paths = false where only the hosts have it."
  }

  validation {
    condition     = can(keys(var.data.args)) ? length(keys(var.data.args)) == 0 || strcontains(coalesce(var.data.type, "-"), ":") : false
    error_message = "data.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.data.args)) ? alltrue([for key in keys(var.data.args) : !contains(["batch_size", "data_path", "drop_last", "keep_batch_order", "lease_ttl", "num_samples", "passes", "repeat_item", "seed", "shuffle", "type"], key)]) : true
    error_message = "data.args: write the keys of the section beside args, not in it."
  }
}

variable "dump" {
  type = object({
    path = optional(string)
  })
  default     = {}
  nullable    = false
  description = "the section dump of the configuration"

  validation {
    condition     = var.dump.path == null ? true : !strcontains(var.dump.path, "://")
    error_message = "dump.path: want a path that every host of the run sees."
  }
}

variable "experiment_name" {
  type        = string
  default     = null
  description = "the name of the run at its loggers"
}

variable "journal" {
  type        = string
  default     = null
  description = "where the journals are: a directory, or a bucket as gs://BUCKET/PREFIX; journal below out without"

  validation {
    condition     = var.journal == null ? true : !strcontains(var.journal, "://") || can(regex("^gs://[^/]+/+[^/]", var.journal))
    error_message = "journal: want a path that every host of the run sees, or gs://BUCKET/PREFIX."
  }
}

variable "launch_mode" {
  type        = string
  default     = null
  description = "where the roles run: processes of this machine, a Ray cluster, jobs of fray"

  validation {
    condition     = var.launch_mode == null ? true : contains(["local", "ray", "fray"], var.launch_mode)
    error_message = "launch_mode: want local, ray, fray."
  }

  validation {
    condition     = coalesce(var.launch_mode, "fray") != "ray"
    error_message = "launch_mode: the module starts jobs. To start roles on a Ray cluster, write a program with fray.rl.ResourceManager; for slices of a Ray cluster, write provider \"ray\"."
  }
}

variable "logger" {
  type = object({
    backend = optional(any)
    path    = optional(string)
  })
  default     = {}
  nullable    = false
  description = "the section logger of the configuration"

  validation {
    condition     = var.logger.backend == null ? true : length(setsubtract(flatten([var.logger.backend]), ["console", "jsonl", "tensorboard", "wandb"])) == 0
    error_message = "logger.backend: want one or a list of console, jsonl, tensorboard, wandb."
  }

  validation {
    condition     = var.logger.path == null ? true : !strcontains(var.logger.path, "://")
    error_message = "logger.path: want a path that every host of the run sees."
  }
}

variable "out" {
  type        = string
  default     = null
  description = "directory of the run, seen by all roles: journals, metrics, checkpoints"

  validation {
    condition     = var.out == null ? true : !strcontains(var.out, "://")
    error_message = "out: want a path that every host of the run sees."
  }
}

variable "project_name" {
  type        = string
  default     = null
  description = "the project under which loggers keep the run"
}

variable "recovery" {
  type        = string
  default     = null
  description = "after a stateful role has died: replay its journal, or rewind the run to its last checkpoint, for which save_freq is 1 or more"

  validation {
    condition     = var.recovery == null ? true : contains(["journal", "checkpoint"], var.recovery)
    error_message = "recovery: want journal, checkpoint."
  }

  validation {
    condition     = coalesce(var.recovery, "journal") != "checkpoint" || coalesce(var.train_worker.save_freq, 0) > 0 || strcontains(coalesce(var.train_worker.type, "default"), ":")
    error_message = "recovery: checkpoint goes back to the run's checkpoints, of which there are none: set train_worker.save_freq to 1 or more, or leave recovery out."
  }
}

variable "resume" {
  type = object({
    mode        = optional(string)
    resume_path = optional(string)
  })
  default     = {}
  nullable    = false
  description = "the section resume of the configuration"

  validation {
    condition     = var.resume.mode == null ? true : contains(["disable", "auto", "from_path"], var.resume.mode)
    error_message = "resume.mode: want disable, auto, from_path."
  }

  validation {
    condition     = var.resume.resume_path == null ? true : !strcontains(var.resume.resume_path, "://")
    error_message = "resume.resume_path: want a path that every host of the run sees."
  }

  validation {
    condition     = var.resume.mode != "from_path" || var.resume.resume_path != null
    error_message = "resume.resume_path: mode from_path needs the directory global_step_N of a checkpoint."
  }

  validation {
    condition     = var.resume.resume_path == null || var.resume.mode != "from_path" || !var.check_paths ? true : strcontains(var.resume.resume_path, "://") || !can(fileexists(var.resume.resume_path))
    error_message = "resume.resume_path: there is no such directory. Write check_paths = false where only the hosts have it."
  }
}

variable "rollout_worker" {
  type = object({
    concurrency  = optional(number)
    max_length   = optional(number)
    max_tokens   = optional(number)
    max_turns    = optional(number)
    num_workers  = optional(number)
    step_timeout = optional(number)
    temperature  = optional(number)
    tools        = optional(list(string))
    type         = optional(string)
    args         = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section rollout_worker of the configuration"

  validation {
    condition     = var.rollout_worker.type == null ? true : contains(["mock", "simple", "agent", "single_turn_math"], var.rollout_worker.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.rollout_worker.type))
    error_message = "rollout_worker.type: want mock, simple, agent, single_turn_math, or module:Class."
  }

  validation {
    condition     = var.rollout_worker.num_workers == null ? true : var.rollout_worker.num_workers >= 1 && floor(var.rollout_worker.num_workers) == var.rollout_worker.num_workers
    error_message = "rollout_worker.num_workers: want a whole number from 1."
  }

  validation {
    condition     = var.rollout_worker.max_tokens == null ? true : var.rollout_worker.max_tokens >= 1 && floor(var.rollout_worker.max_tokens) == var.rollout_worker.max_tokens
    error_message = "rollout_worker.max_tokens: want a whole number from 1."
  }

  validation {
    condition     = var.rollout_worker.max_length == null ? true : var.rollout_worker.max_length >= 1 && floor(var.rollout_worker.max_length) == var.rollout_worker.max_length
    error_message = "rollout_worker.max_length: want a whole number from 1."
  }

  validation {
    condition     = var.rollout_worker.step_timeout == null ? true : var.rollout_worker.step_timeout > 0
    error_message = "rollout_worker.step_timeout: want a number of seconds above 0."
  }

  validation {
    condition     = var.rollout_worker.concurrency == null ? true : var.rollout_worker.concurrency >= 1 && floor(var.rollout_worker.concurrency) == var.rollout_worker.concurrency
    error_message = "rollout_worker.concurrency: want a whole number from 1."
  }

  validation {
    condition     = var.rollout_worker.max_turns == null ? true : var.rollout_worker.max_turns >= 1 && floor(var.rollout_worker.max_turns) == var.rollout_worker.max_turns
    error_message = "rollout_worker.max_turns: want a whole number from 1."
  }

  validation {
    condition     = alltrue([for tool in coalesce(var.rollout_worker.tools, []) : can(regex("^[^:/ ]+:[^:/ ]+$", tool))])
    error_message = "rollout_worker.tools: want module:name of functions."
  }

  validation {
    condition     = can(keys(var.rollout_worker.args)) ? length(keys(var.rollout_worker.args)) == 0 || strcontains(coalesce(var.rollout_worker.type, "-"), ":") : false
    error_message = "rollout_worker.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.rollout_worker.args)) ? alltrue([for key in keys(var.rollout_worker.args) : !contains(["concurrency", "max_length", "max_tokens", "max_turns", "num_workers", "step_timeout", "temperature", "tools", "type"], key)]) : true
    error_message = "rollout_worker.args: write the keys of the section beside args, not in it."
  }
}

variable "run" {
  type        = string
  default     = null
  description = "a run that has ended in out does not begin again; another value, such as \"2\", begins another one there"
}

variable "runtime_monitor" {
  type = object({
    exception_handling = optional(object({
      check_interval = optional(number)
      enabled        = optional(bool)
      policy         = optional(string)
    }), {})
    health_check = optional(object({
      check_interval = optional(number)
      enabled        = optional(bool)
      timeout        = optional(number)
    }), {})
  })
  default     = {}
  nullable    = false
  description = "the section runtime_monitor of the configuration"

  validation {
    condition     = var.runtime_monitor.exception_handling.check_interval == null ? true : var.runtime_monitor.exception_handling.check_interval > 0
    error_message = "runtime_monitor.exception_handling.check_interval: want a number of seconds above 0."
  }

  validation {
    condition     = var.runtime_monitor.exception_handling.policy == null ? true : contains(["stop_on_error", "continue", "stop_on_critical"], var.runtime_monitor.exception_handling.policy)
    error_message = "runtime_monitor.exception_handling.policy: want stop_on_error, continue, stop_on_critical."
  }

  validation {
    condition     = var.runtime_monitor.health_check.check_interval == null ? true : var.runtime_monitor.health_check.check_interval > 0
    error_message = "runtime_monitor.health_check.check_interval: want a number of seconds above 0."
  }

  validation {
    condition     = var.runtime_monitor.health_check.timeout == null ? true : var.runtime_monitor.health_check.timeout > 0
    error_message = "runtime_monitor.health_check.timeout: want a number of seconds above 0."
  }
}

variable "seed" {
  type        = number
  default     = null
  description = "of sampling and of data without a seed of their own"

  validation {
    condition     = var.seed == null ? true : var.seed >= 0 && floor(var.seed) == var.seed
    error_message = "seed: want a whole number from 0."
  }
}

variable "service" {
  type = object({
    inference_service = optional(object({
      api_key                = optional(string)
      backend                = optional(string)
      class                  = optional(string)
      config                 = optional(any)
      freeze_for_weight_sync = optional(bool)
      max_retries            = optional(number)
      model                  = optional(string)
      model_tag              = optional(string)
      sync_timeout           = optional(number)
      timeout                = optional(number)
      url                    = optional(string)
      args                   = optional(any, {})
    }), {})
    train_service = optional(object({
      backend    = optional(string)
      class      = optional(string)
      config     = optional(any)
      identifier = optional(string)
      model_tag  = optional(string)
      url        = optional(string)
      args       = optional(any, {})
    }), {})
  })
  default     = {}
  nullable    = false
  description = "the section service of the configuration"

  validation {
    condition     = var.service.train_service.backend == null ? true : contains(["mock", "actor", "nextrainer"], var.service.train_service.backend) || can(regex("^[^:/ ]+:[^:/ ]+$", var.service.train_service.backend))
    error_message = "service.train_service.backend: want mock, actor, nextrainer, or module:Class."
  }

  validation {
    condition     = var.service.train_service.config == null ? true : can(keys(var.service.train_service.config))
    error_message = "service.train_service.config: want an object."
  }

  validation {
    condition     = var.service.inference_service.backend == null ? true : contains(["mock", "vllm", "sglang", "openai"], var.service.inference_service.backend) || can(regex("^[^:/ ]+:[^:/ ]+$", var.service.inference_service.backend))
    error_message = "service.inference_service.backend: want mock, vllm, sglang, openai, or module:Class."
  }

  validation {
    condition     = var.service.inference_service.max_retries == null ? true : var.service.inference_service.max_retries >= 0 && floor(var.service.inference_service.max_retries) == var.service.inference_service.max_retries
    error_message = "service.inference_service.max_retries: want a whole number from 0."
  }

  validation {
    condition     = var.service.inference_service.timeout == null ? true : var.service.inference_service.timeout > 0
    error_message = "service.inference_service.timeout: want a number of seconds above 0."
  }

  validation {
    condition     = var.service.inference_service.sync_timeout == null ? true : var.service.inference_service.sync_timeout > 0
    error_message = "service.inference_service.sync_timeout: want a number of seconds above 0."
  }

  validation {
    condition     = var.service.inference_service.config == null ? true : can(keys(var.service.inference_service.config))
    error_message = "service.inference_service.config: want an object."
  }

  validation {
    condition     = var.service.train_service.url == null || strcontains(coalesce(var.service.train_service.backend, "actor"), ":")
    error_message = "service.train_service.url: only a TrainServiceClient of yours as backend, module:Class, reads it: leave it out."
  }

  validation {
    condition     = var.service.train_service.identifier == null || strcontains(coalesce(var.service.train_service.backend, "actor"), ":")
    error_message = "service.train_service.identifier: only a TrainServiceClient of yours as backend, module:Class, reads it: leave it out."
  }

  validation {
    condition     = var.service.train_service.class == null ? true : can(regex("^[^:/ ]+:[^:/ ]+$", var.service.train_service.class))
    error_message = "service.train_service.class: want module:Class."
  }

  validation {
    condition     = var.service.inference_service.class == null ? true : can(regex("^[^:/ ]+:[^:/ ]+$", var.service.inference_service.class))
    error_message = "service.inference_service.class: want module:Class."
  }

  validation {
    condition     = contains(["mock"], coalesce(var.rollout_worker.type, "simple")) || var.service.inference_service.url != null || local.counts.inference_service > 0 && contains(keys(local.roles), "inference_service")
    error_message = "service.inference_service.url: rollouts need an inference service: write its url, or the class of the role inference_service, with a count of at least 1."
  }

  validation {
    condition     = coalesce(var.service.train_service.backend, "actor") != "nextrainer"
    error_message = "service.train_service.backend: fray has no client of NexTrainer. Write backend \"actor\" and the trainer as class of the role train_service, or your own client as module:Class of a TrainServiceClient."
  }

  validation {
    condition     = contains(["mock", "nextrainer"], coalesce(var.service.train_service.backend, "actor")) || strcontains(coalesce(var.service.train_service.backend, "actor"), ":") || var.service.train_service.class != null
    error_message = "service.train_service.class: training needs a train service: write the class of the role train_service, also where the role has a command, or another backend."
  }

  validation {
    condition     = can(keys(var.service.inference_service.args)) ? length(keys(var.service.inference_service.args)) == 0 || strcontains(coalesce(var.service.inference_service.backend, "-"), ":") || strcontains(coalesce(var.service.inference_service.class, "-"), ":") : false
    error_message = "service.inference_service.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.service.inference_service.args)) ? alltrue([for key in keys(var.service.inference_service.args) : !contains(["api_key", "backend", "class", "config", "freeze_for_weight_sync", "max_retries", "model", "model_tag", "sync_timeout", "timeout", "url"], key)]) : true
    error_message = "service.inference_service.args: write the keys of the section beside args, not in it."
  }

  validation {
    condition     = can(keys(var.service.train_service.args)) ? length(keys(var.service.train_service.args)) == 0 || strcontains(coalesce(var.service.train_service.backend, "-"), ":") || strcontains(coalesce(var.service.train_service.class, "-"), ":") : false
    error_message = "service.train_service.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.service.train_service.args)) ? alltrue([for key in keys(var.service.train_service.args) : !contains(["backend", "class", "config", "identifier", "model_tag", "url"], key)]) : true
    error_message = "service.train_service.args: write the keys of the section beside args, not in it."
  }
}

variable "train_batch_pool" {
  type = object({
    batch_size = optional(number)
    type       = optional(string)
    args       = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section train_batch_pool of the configuration"

  validation {
    condition     = var.train_batch_pool.type == null ? true : contains(["default"], var.train_batch_pool.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.train_batch_pool.type))
    error_message = "train_batch_pool.type: want default, or module:Class."
  }

  validation {
    condition     = var.train_batch_pool.batch_size == null ? true : var.train_batch_pool.batch_size >= 1 && floor(var.train_batch_pool.batch_size) == var.train_batch_pool.batch_size
    error_message = "train_batch_pool.batch_size: want a whole number from 1."
  }

  validation {
    condition     = can(keys(var.train_batch_pool.args)) ? length(keys(var.train_batch_pool.args)) == 0 || strcontains(coalesce(var.train_batch_pool.type, "-"), ":") : false
    error_message = "train_batch_pool.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.train_batch_pool.args)) ? alltrue([for key in keys(var.train_batch_pool.args) : !contains(["batch_size", "type"], key)]) : true
    error_message = "train_batch_pool.args: write the keys of the section beside args, not in it."
  }
}

variable "train_worker" {
  type = object({
    checkpoint_path      = optional(string)
    num_workers          = optional(number)
    remove_previous_ckpt = optional(bool)
    save_freq            = optional(number)
    sync_weight_path     = optional(string)
    total_train_steps    = optional(number)
    type                 = optional(string)
    args                 = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section train_worker of the configuration"

  validation {
    condition     = var.train_worker.type == null ? true : contains(["default"], var.train_worker.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.train_worker.type))
    error_message = "train_worker.type: want default, or module:Class."
  }

  validation {
    condition     = var.train_worker.total_train_steps == null ? true : var.train_worker.total_train_steps >= 1 && floor(var.train_worker.total_train_steps) == var.train_worker.total_train_steps
    error_message = "train_worker.total_train_steps: want a whole number from 1."
  }

  validation {
    condition     = var.train_worker.num_workers == null ? true : var.train_worker.num_workers >= 1 && floor(var.train_worker.num_workers) == var.train_worker.num_workers
    error_message = "train_worker.num_workers: want a whole number from 1."
  }

  validation {
    condition     = var.train_worker.checkpoint_path == null ? true : !strcontains(var.train_worker.checkpoint_path, "://") || strcontains(coalesce(var.train_worker.type, "-"), ":")
    error_message = "train_worker.checkpoint_path: want a path that every host of the run sees."
  }

  validation {
    condition     = var.train_worker.sync_weight_path == null ? true : !strcontains(var.train_worker.sync_weight_path, "://") || strcontains(coalesce(var.train_worker.type, "-"), ":")
    error_message = "train_worker.sync_weight_path: want a path that every host of the run sees."
  }

  validation {
    condition     = var.train_worker.save_freq == null ? true : var.train_worker.save_freq >= 0 && floor(var.train_worker.save_freq) == var.train_worker.save_freq
    error_message = "train_worker.save_freq: want a whole number from 0."
  }

  validation {
    condition     = can(keys(var.train_worker.args)) ? length(keys(var.train_worker.args)) == 0 || strcontains(coalesce(var.train_worker.type, "-"), ":") : false
    error_message = "train_worker.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.train_worker.args)) ? alltrue([for key in keys(var.train_worker.args) : !contains(["checkpoint_path", "num_workers", "remove_previous_ckpt", "save_freq", "sync_weight_path", "total_train_steps", "type"], key)]) : true
    error_message = "train_worker.args: write the keys of the section beside args, not in it."
  }
}

variable "trajectory_pool" {
  type = object({
    batch_size                 = optional(number)
    check_batch_ready_function = optional(string)
    group_size                 = optional(number)
    incomplete_groups          = optional(string)
    key_list                   = optional(list(string))
    max_bytes                  = optional(number)
    type                       = optional(string)
    args                       = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section trajectory_pool of the configuration"

  validation {
    condition     = var.trajectory_pool.type == null ? true : contains(["default"], var.trajectory_pool.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.trajectory_pool.type))
    error_message = "trajectory_pool.type: want default, or module:Class."
  }

  validation {
    condition     = var.trajectory_pool.batch_size == null ? true : var.trajectory_pool.batch_size >= 1 && floor(var.trajectory_pool.batch_size) == var.trajectory_pool.batch_size
    error_message = "trajectory_pool.batch_size: want a whole number from 1."
  }

  validation {
    condition     = var.trajectory_pool.group_size == null ? true : var.trajectory_pool.group_size >= 1 && floor(var.trajectory_pool.group_size) == var.trajectory_pool.group_size
    error_message = "trajectory_pool.group_size: want a whole number from 1."
  }

  validation {
    condition     = var.trajectory_pool.check_batch_ready_function == null ? true : contains(["batch_size_reached", "loaded_batch_finished", "batch_size_reached_and_loaded_batch_finished", "batch_size"], var.trajectory_pool.check_batch_ready_function)
    error_message = "trajectory_pool.check_batch_ready_function: want batch_size_reached, loaded_batch_finished, batch_size_reached_and_loaded_batch_finished, batch_size."
  }

  validation {
    condition     = var.trajectory_pool.incomplete_groups == null ? true : contains(["flush", "drop"], var.trajectory_pool.incomplete_groups)
    error_message = "trajectory_pool.incomplete_groups: want flush, drop."
  }

  validation {
    condition     = var.trajectory_pool.max_bytes == null ? true : var.trajectory_pool.max_bytes >= 1024 && floor(var.trajectory_pool.max_bytes) == var.trajectory_pool.max_bytes
    error_message = "trajectory_pool.max_bytes: want a whole number from 1024."
  }

  validation {
    condition     = local.own_code || !local.exact_batches || length(local.key_list) == 0 || coalesce(var.trajectory_pool.batch_size, 32) % local.group_size == 0
    error_message = "trajectory_pool.batch_size: want a multiple of group_size, else a batch has a part of a group."
  }

  validation {
    condition     = local.own_code || !contains(local.key_list, "group_id") || coalesce(var.trajectory_pool.group_size, 1) <= local.repeat_item
    error_message = "trajectory_pool.group_size: no group would be complete, since each item is rolled out less often: set data.repeat_item to the same."
  }

  validation {
    condition     = local.own_code || !local.exact_batches || !coalesce(var.data.keep_batch_order, false) || local.loaded >= coalesce(var.trajectory_pool.batch_size, 32)
    error_message = "trajectory_pool.batch_size: no batch would be ready: with data.keep_batch_order the next data wait, and a loaded batch gives data.batch_size times data.repeat_item trajectories."
  }

  validation {
    condition     = can(keys(var.trajectory_pool.args)) ? length(keys(var.trajectory_pool.args)) == 0 || strcontains(coalesce(var.trajectory_pool.type, "-"), ":") : false
    error_message = "trajectory_pool.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.trajectory_pool.args)) ? alltrue([for key in keys(var.trajectory_pool.args) : !contains(["batch_size", "check_batch_ready_function", "group_size", "incomplete_groups", "key_list", "max_bytes", "type"], key)]) : true
    error_message = "trajectory_pool.args: write the keys of the section beside args, not in it."
  }
}

variable "validate" {
  type = object({
    data = optional(object({
      batch_size       = optional(number)
      data_path        = optional(string)
      drop_last        = optional(bool)
      keep_batch_order = optional(bool)
      lease_ttl        = optional(number)
      num_samples      = optional(number)
      passes           = optional(number)
      repeat_item      = optional(number)
      seed             = optional(number)
      shuffle          = optional(bool)
      type             = optional(string)
      args             = optional(any, {})
    }), {})
    eval = optional(object({
      type = optional(string)
      args = optional(any, {})
    }), {})
    validate_before_train = optional(bool)
  })
  default     = {}
  nullable    = false
  description = "the section validate of the configuration"

  validation {
    condition     = var.validate.data.type == null ? true : contains(["mock", "jsonl", "directory", "torch"], var.validate.data.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.validate.data.type))
    error_message = "validate.data.type: want mock, jsonl, directory, torch, or module:Class."
  }

  validation {
    condition     = var.validate.data.seed == null ? true : var.validate.data.seed >= 0 && floor(var.validate.data.seed) == var.validate.data.seed
    error_message = "validate.data.seed: want a whole number from 0."
  }

  validation {
    condition     = var.validate.data.data_path == null ? true : !strcontains(var.validate.data.data_path, "://") || strcontains(coalesce(var.validate.data.type, "-"), ":")
    error_message = "validate.data.data_path: want a path that every host of the run sees."
  }

  validation {
    condition     = var.validate.data.num_samples == null ? true : var.validate.data.num_samples >= 1 && floor(var.validate.data.num_samples) == var.validate.data.num_samples
    error_message = "validate.data.num_samples: want a whole number from 1."
  }

  validation {
    condition     = var.validate.data.batch_size == null ? true : var.validate.data.batch_size >= 1 && floor(var.validate.data.batch_size) == var.validate.data.batch_size
    error_message = "validate.data.batch_size: want a whole number from 1."
  }

  validation {
    condition     = var.validate.data.repeat_item == null ? true : var.validate.data.repeat_item >= 1 && floor(var.validate.data.repeat_item) == var.validate.data.repeat_item
    error_message = "validate.data.repeat_item: want a whole number from 1."
  }

  validation {
    condition     = var.validate.data.passes == null ? true : var.validate.data.passes >= 1 && floor(var.validate.data.passes) == var.validate.data.passes
    error_message = "validate.data.passes: want a whole number from 1."
  }

  validation {
    condition     = var.validate.data.lease_ttl == null ? true : var.validate.data.lease_ttl > 0
    error_message = "validate.data.lease_ttl: want a number of seconds above 0."
  }

  validation {
    condition     = var.validate.eval.type == null ? true : contains(["default"], var.validate.eval.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.validate.eval.type))
    error_message = "validate.eval.type: want default, or module:Class."
  }

  validation {
    condition     = var.validate.data.type == null ? true : var.validate.data.type == "mock" || strcontains(var.validate.data.type, ":") || var.validate.data.data_path != null
    error_message = "validate.data.data_path: name the file or directory of the items, which all types but mock read."
  }

  validation {
    condition     = var.validate.data.data_path == null || var.validate.data.type == null || var.validate.data.type == "mock" || !var.check_paths ? true : strcontains(var.validate.data.data_path, "://") || (var.validate.data.type == "jsonl" ? try(fileexists(var.validate.data.data_path), false) : var.validate.data.type == "directory" ? !can(fileexists(var.validate.data.data_path)) : try(fileexists(var.validate.data.data_path), true))
    error_message = "validate.data.data_path: there is no such file or directory; jsonl reads a file, directory a directory. Write check_paths = false where only the hosts have it."
  }

  validation {
    condition     = !coalesce(var.validate.validate_before_train, false) || local.validates
    error_message = "validate.validate_before_train: there are no data for validation: write validate.data with its type."
  }

  validation {
    condition     = can(keys(var.validate.data.args)) ? length(keys(var.validate.data.args)) == 0 || strcontains(coalesce(var.validate.data.type, "-"), ":") : false
    error_message = "validate.data.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.validate.data.args)) ? alltrue([for key in keys(var.validate.data.args) : !contains(["batch_size", "data_path", "drop_last", "keep_batch_order", "lease_ttl", "num_samples", "passes", "repeat_item", "seed", "shuffle", "type"], key)]) : true
    error_message = "validate.data.args: write the keys of the section beside args, not in it."
  }

  validation {
    condition     = can(keys(var.validate.eval.args)) ? length(keys(var.validate.eval.args)) == 0 || strcontains(coalesce(var.validate.eval.type, "-"), ":") : false
    error_message = "validate.eval.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.validate.eval.args)) ? alltrue([for key in keys(var.validate.eval.args) : !contains(["type"], key)]) : true
    error_message = "validate.eval.args: write the keys of the section beside args, not in it."
  }
}

variable "weight" {
  type = object({
    staleness_threshold = optional(number)
    sync_mode           = optional(string)
    type                = optional(string)
    validate_freq       = optional(number)
    args                = optional(any, {})
  })
  default     = {}
  nullable    = false
  description = "the section weight of the configuration"

  validation {
    condition     = var.weight.type == null ? true : contains(["default"], var.weight.type) || can(regex("^[^:/ ]+:[^:/ ]+$", var.weight.type))
    error_message = "weight.type: want default, or module:Class."
  }

  validation {
    condition     = var.weight.sync_mode == null ? true : contains(["sync", "fully-async", "batch-async"], var.weight.sync_mode)
    error_message = "weight.sync_mode: want sync, fully-async, batch-async."
  }

  validation {
    condition     = var.weight.staleness_threshold == null ? true : var.weight.staleness_threshold >= 0 && floor(var.weight.staleness_threshold) == var.weight.staleness_threshold
    error_message = "weight.staleness_threshold: want a whole number from 0."
  }

  validation {
    condition     = var.weight.validate_freq == null ? true : var.weight.validate_freq >= 0 && floor(var.weight.validate_freq) == var.weight.validate_freq
    error_message = "weight.validate_freq: want a whole number from 0."
  }

  validation {
    condition     = coalesce(var.weight.staleness_threshold, 0) == 0 || var.weight.sync_mode == "batch-async"
    error_message = "weight.staleness_threshold: only sync_mode batch-async has a threshold: leave it out, or set that mode."
  }

  validation {
    condition     = local.own_pools || local.pools == 1 || coalesce(var.weight.sync_mode, "sync") != "sync"
    error_message = "weight.sync_mode: in mode sync only the first batch after a sync is new enough, and those of further pools would be rolled out again: write one trajectory_pool, or batch-async with a staleness_threshold of at least one less than there are pools."
  }

  validation {
    condition     = coalesce(var.weight.validate_freq, 0) == 0 || local.validates
    error_message = "weight.validate_freq: there are no data for validation: write validate.data with its type."
  }

  validation {
    condition     = can(keys(var.weight.args)) ? length(keys(var.weight.args)) == 0 || strcontains(coalesce(var.weight.type, "-"), ":") : false
    error_message = "weight.args: want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."
  }

  validation {
    condition     = can(keys(var.weight.args)) ? alltrue([for key in keys(var.weight.args) : !contains(["staleness_threshold", "sync_mode", "type", "validate_freq"], key)]) : true
    error_message = "weight.args: write the keys of the section beside args, not in it."
  }
}
