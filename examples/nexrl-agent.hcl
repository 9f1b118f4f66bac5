# An agent learns to use a calculator over several turns: which operation of an expression comes first, and when to answer.
# docs/guides/nexrl.md describes it, examples/nexrl has its programs. Apply it as examples/nexrl.hcl.

fray {
  state "local" {
    path = ".fray/nexrl-agent"
  }
}

variable "python" {
  type        = string
  default     = "python3"
  description = "a Python with the packages fray-ml[rl] and numpy"
}

controller {
}

module "run" {
  source  = "../library/nexrl"
  name    = "agent"
  project = "nexrl"
  python  = [var.python]
  out     = "out/nexrl-agent"

  data = {
    type             = "jsonl"
    data_path        = "nexrl/sums.jsonl"
    batch_size       = 16
    repeat_item      = 8
    keep_batch_order = true
  }

  rollout_worker = {
    type        = "rollout:CalculatorRolloutWorker"
    num_workers = 2
    temperature = 1
    max_turns   = 4
  }

  trajectory_pool = {
    key_list                   = ["group_id"]
    group_size                 = 8
    batch_size                 = 128
    check_batch_ready_function = "loaded_batch_finished"
  }

  train_worker = { total_train_steps = 20, save_freq = 10 }
  weight       = { sync_mode = "sync", validate_freq = 5 }

  service = {
    train_service     = { class = "agent:CalculatorTrainService" }
    inference_service = { class = "agent:CalculatorService", model = "calculator" }
  }

  validate = {
    validate_before_train = true
    data                  = { type = "jsonl", data_path = "nexrl/sums_validate.jsonl", batch_size = 100 }
  }

  resume = { mode = "auto" }
  logger = { backend = ["console", "jsonl"] }

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
  }
}

output "out" {
  value = module.run.out
}
