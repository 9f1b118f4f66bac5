# A reinforcement learning run: a policy learns to write three digits in reverse order. GRPO, with 8 rollouts for each of
# 32 prompts per step. docs/guides/nexrl.md describes the run, examples/nexrl has its programs.

fray {
  state "local" {
    path = ".fray/nexrl"
  }
}

variable "steps" {
  type        = number
  default     = 60
  description = "updates of the policy"
}

variable "workers" {
  type        = number
  default     = 2
  description = "how many rollout workers"
}

variable "out" {
  type        = string
  default     = "out/nexrl"
  description = "directory for checkpoints and metrics, seen by all hosts, relative to this file"
}

variable "python" {
  type        = string
  default     = "python3"
  description = "a Python with the packages fray-ml[rl] and numpy"
}

# The roles of a run find each other by name, which needs a controller of the cluster.
controller {
}

module "run" {
  source  = "../library/nexrl"
  name    = "reverse"
  project = "nexrl"
  python  = [var.python]
  out     = var.out
  seed    = 0

  data = {
    type             = "jsonl"
    data_path        = "nexrl/train.jsonl"
    batch_size       = 32
    repeat_item      = 8
    passes           = ceil(var.steps * 32 / 800)
    keep_batch_order = true
  }

  rollout_worker = {
    type        = "rollout:ReverseRolloutWorker"
    num_workers = var.workers
    concurrency = 16
    temperature = 1
    max_tokens  = 4
  }

  trajectory_pool = {
    key_list                   = ["group_id"]
    group_size                 = 8
    batch_size                 = 256
    check_batch_ready_function = "loaded_batch_finished"
  }

  algorithm = {
    type = "grpo"
  }

  train_worker = {
    total_train_steps = var.steps
    save_freq         = 10
  }

  weight = {
    sync_mode     = "sync"
    validate_freq = 10
  }

  service = {
    train_service = {
      class  = "train_service:ReverseTrainService"
      config = { learning_rate = 0.05 }
    }
    inference_service = {
      class = "inference:InferenceService"
      model = "reverse"
    }
  }

  validate = {
    validate_before_train = true
    data = {
      type       = "jsonl"
      data_path  = "nexrl/validate.jsonl"
      batch_size = 200
    }
  }

  resume = {
    mode = "auto"
  }

  logger = {
    backend = ["console", "jsonl"]
  }

  roles = {
    controller             = { colocation_group = "coordination" }
    data_loader            = { colocation_group = "coordination" }
    validate_dataloader    = { colocation_group = "coordination" }
    validator              = { colocation_group = "coordination" }
    trajectory_pool        = { colocation_group = "coordination" }
    train_batch_pool       = { colocation_group = "coordination" }
    weight_sync_controller = { colocation_group = "coordination" }

    algorithm_processor = { colocation_group = "learner" }
    train_worker        = { colocation_group = "learner" }

    train_service = {
      command   = [var.python, "train_service.py"] # hosts the class in process 0; the other processes compute for it
      resources = { slices = 2 }                   # a gang of two processes
    }
  }
}

output "processes" {
  value = module.run.processes
}

output "out" {
  value = module.run.out
}
