# What the roles of a run are started as: one entry for each role that is not as usual.

variable "roles" {
  type = object({
    rollout_worker = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    train_worker = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    algorithm_processor = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    trajectory_pool = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    train_batch_pool = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    weight_sync_controller = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    data_loader = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    validate_dataloader = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    validator = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    activity_tracker = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    controller = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    experiment_logger = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    train_service = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
    inference_service = optional(object({
      count            = optional(number)
      colocation_group = optional(string)
      command          = optional(list(string))
      reservation      = optional(any)
      resources = optional(object({
        cpu          = optional(number)
        memory       = optional(string)
        disk         = optional(string)
        tpu          = optional(string)
        accelerators = optional(list(string))
        machine_type = optional(string)
        slices       = optional(number)
        preemptible  = optional(bool)
        zones        = optional(list(string))
        regions      = optional(list(string))
        gpu = optional(object({
          type  = optional(string)
          count = optional(number)
        }))
      }), {})
      health = optional(object({
        enabled      = optional(bool)
        interval     = optional(string)
        timeout      = optional(string)
        threshold    = optional(number)
        start_period = optional(string)
      }), {})
      retries = optional(object({
        failure    = optional(number)
        preemption = optional(number)
      }), {})
      env = optional(map(string), {})
    }), {})
  })
  default     = {}
  nullable    = false
  description = "how many of each role, what they share processes with, and what they run on"

  validation {
    condition     = alltrue([for role in values(var.roles) : role.count == null ? true : role.count >= 0 && floor(role.count) == role.count])
    error_message = "roles: want a whole number from 0 as count of ${join(", ", [for name, role in var.roles : name if role.count == null ? false : role.count < 0 || floor(role.count) != role.count])}."
  }

  validation {
    condition     = alltrue([for role in values(var.roles) : role.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", role.colocation_group)) && !contains(keys(var.roles), role.colocation_group)])
    error_message = "roles: a colocation_group is a name of lowercase letters, digits, _ and -, and no role's."
  }

  validation {
    condition     = alltrue([for names in values(local.grouped) : length(distinct([for name in names : local.roles[name].count])) == 1])
    error_message = "roles: the roles of a colocation_group need equal counts, since each of its processes has one of every role: ${join("; ", [for group, names in local.grouped : "${group} has ${join(", ", [for name in names : "${local.roles[name].count} ${name}"])}" if length(distinct([for name in names : local.roles[name].count])) > 1])}."
  }

  validation {
    condition     = alltrue([for names in values(local.grouped) : length(distinct([for name in names : local.roles[name].python])) == 1])
    error_message = "roles: a process runs programs in Go or in Python, so a colocation_group cannot have both: ${join("; ", [for group, names in local.grouped : "${group} has ${join(", ", [for name in names : "${name} in ${local.roles[name].python ? "Python" : "Go"}"])}" if length(distinct([for name in names : local.roles[name].python])) > 1])}."
  }

  validation {
    condition     = alltrue([for names in values(local.grouped) : length([for name in names : name if local.roles[name].command != null]) == 0 && length([for name in names : name if local.roles[name].reservation != null]) <= 1 && length([for name in names : name if local.roles[name].resources != local.plain.resources]) <= 1])
    error_message = "roles: in a colocation_group, one role has the resources and the reservation of its processes, and none has a command."
  }

  validation {
    condition     = var.roles.inference_service.colocation_group == null
    error_message = "roles: inference_service has processes of its own, since rollout workers start once they know its address: leave out its colocation_group."
  }

  validation {
    condition     = alltrue([for name in ["train_batch_pool", "weight_sync_controller", "data_loader", "controller"] : lookup(local.roles, name, { count = 0 }).count == 1])
    error_message = "roles: a run has one train_batch_pool, one weight_sync_controller, one data_loader and one controller: leave out their count."
  }

  validation {
    condition     = alltrue([for name in ["validate_dataloader", "validator", "activity_tracker", "experiment_logger"] : lookup(local.roles, name, { count = 0 }).count <= 1])
    error_message = "roles: a run has at most one validate_dataloader, validator, activity_tracker and experiment_logger."
  }

  validation {
    condition     = alltrue([for name in ["rollout_worker", "train_worker", "algorithm_processor", "trajectory_pool"] : contains(keys(local.roles), name)])
    error_message = "roles: a run has at least one rollout_worker, train_worker, algorithm_processor and trajectory_pool."
  }

  validation {
    condition     = var.roles.rollout_worker.count == null || var.rollout_worker.num_workers == null ? true : var.roles.rollout_worker.count == var.rollout_worker.num_workers
    error_message = "roles: rollout_worker.count differs from num_workers of the section rollout_worker: write one of them."
  }

  validation {
    condition     = var.roles.train_worker.count == null || var.train_worker.num_workers == null ? true : var.roles.train_worker.count == var.train_worker.num_workers
    error_message = "roles: train_worker.count differs from num_workers of the section train_worker: write one of them."
  }
}
