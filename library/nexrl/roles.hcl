# Written by go test ./rl/config -update, from the roles of a run. Do not edit.

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
  description = "the roles that are not as usual: how many, where, and what they run"

  validation {
    condition     = var.roles.rollout_worker.count == null ? true : var.roles.rollout_worker.count >= 1 && floor(var.roles.rollout_worker.count) == var.roles.rollout_worker.count
    error_message = "roles.rollout_worker.count: want a whole number from 1."
  }

  validation {
    condition     = var.roles.rollout_worker.count == null || var.rollout_worker.num_workers == null ? true : var.roles.rollout_worker.count == var.rollout_worker.num_workers
    error_message = "roles.rollout_worker.count: num_workers of the section rollout_worker is ${try(coalesce(var.rollout_worker.num_workers, 0), "")}: write one of the two."
  }

  validation {
    condition     = var.roles.rollout_worker.resources.slices == null ? true : var.roles.rollout_worker.resources.slices == 1
    error_message = "roles.rollout_worker.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.rollout_worker.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.rollout_worker.colocation_group)) && !can(regex("_[0-9]+$", var.roles.rollout_worker.colocation_group)) && !contains(keys(var.roles), var.roles.rollout_worker.colocation_group)
    error_message = "roles.rollout_worker.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.rollout_worker.colocation_group == null || !contains(keys(local.roles), "rollout_worker") ? true : local.roles.rollout_worker.count == local.roles[local.grouped[var.roles.rollout_worker.colocation_group][0]].count
    error_message = "roles.rollout_worker.colocation_group: the group has ${try(local.roles.rollout_worker.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.rollout_worker.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.rollout_worker.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.rollout_worker.colocation_group == null || !contains(keys(local.roles), "rollout_worker") ? true : local.roles.rollout_worker.python == local.roles[local.grouped[var.roles.rollout_worker.colocation_group][0]].python
    error_message = "roles.rollout_worker.colocation_group: this role runs in ${try(local.roles.rollout_worker.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.rollout_worker.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.rollout_worker.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.rollout_worker.command == null || var.roles.rollout_worker.colocation_group == null
    error_message = "roles.rollout_worker.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.rollout_worker.resources) : value == null]) || try(local.owners[var.roles.rollout_worker.colocation_group].resources == "rollout_worker", true)
    error_message = "roles.rollout_worker.resources: ${try(local.owners[var.roles.rollout_worker.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.rollout_worker.reservation == null || try(local.owners[var.roles.rollout_worker.colocation_group].reservation == "rollout_worker", true)
    error_message = "roles.rollout_worker.reservation: ${try(local.owners[var.roles.rollout_worker.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.rollout_worker.health) : value == null]) || try(local.owners[var.roles.rollout_worker.colocation_group].health == "rollout_worker", true)
    error_message = "roles.rollout_worker.health: ${try(local.owners[var.roles.rollout_worker.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.rollout_worker.retries) : value == null]) || try(local.owners[var.roles.rollout_worker.colocation_group].retries == "rollout_worker", true)
    error_message = "roles.rollout_worker.retries: ${try(local.owners[var.roles.rollout_worker.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.train_worker.count == null ? true : var.roles.train_worker.count >= 1 && floor(var.roles.train_worker.count) == var.roles.train_worker.count
    error_message = "roles.train_worker.count: want a whole number from 1."
  }

  validation {
    condition     = var.roles.train_worker.count == null || var.train_worker.num_workers == null ? true : var.roles.train_worker.count == var.train_worker.num_workers
    error_message = "roles.train_worker.count: num_workers of the section train_worker is ${try(coalesce(var.train_worker.num_workers, 0), "")}: write one of the two."
  }

  validation {
    condition     = var.roles.train_worker.resources.slices == null ? true : var.roles.train_worker.resources.slices == 1
    error_message = "roles.train_worker.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.train_worker.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.train_worker.colocation_group)) && !can(regex("_[0-9]+$", var.roles.train_worker.colocation_group)) && !contains(keys(var.roles), var.roles.train_worker.colocation_group)
    error_message = "roles.train_worker.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.train_worker.colocation_group == null || !contains(keys(local.roles), "train_worker") ? true : local.roles.train_worker.count == local.roles[local.grouped[var.roles.train_worker.colocation_group][0]].count
    error_message = "roles.train_worker.colocation_group: the group has ${try(local.roles.train_worker.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.train_worker.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.train_worker.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.train_worker.colocation_group == null || !contains(keys(local.roles), "train_worker") ? true : local.roles.train_worker.python == local.roles[local.grouped[var.roles.train_worker.colocation_group][0]].python
    error_message = "roles.train_worker.colocation_group: this role runs in ${try(local.roles.train_worker.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.train_worker.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.train_worker.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.train_worker.command == null || var.roles.train_worker.colocation_group == null
    error_message = "roles.train_worker.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_worker.resources) : value == null]) || try(local.owners[var.roles.train_worker.colocation_group].resources == "train_worker", true)
    error_message = "roles.train_worker.resources: ${try(local.owners[var.roles.train_worker.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.train_worker.reservation == null || try(local.owners[var.roles.train_worker.colocation_group].reservation == "train_worker", true)
    error_message = "roles.train_worker.reservation: ${try(local.owners[var.roles.train_worker.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_worker.health) : value == null]) || try(local.owners[var.roles.train_worker.colocation_group].health == "train_worker", true)
    error_message = "roles.train_worker.health: ${try(local.owners[var.roles.train_worker.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_worker.retries) : value == null]) || try(local.owners[var.roles.train_worker.colocation_group].retries == "train_worker", true)
    error_message = "roles.train_worker.retries: ${try(local.owners[var.roles.train_worker.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.algorithm_processor.count == null ? true : var.roles.algorithm_processor.count >= 1 && floor(var.roles.algorithm_processor.count) == var.roles.algorithm_processor.count
    error_message = "roles.algorithm_processor.count: want a whole number from 1."
  }

  validation {
    condition     = var.roles.algorithm_processor.resources.slices == null ? true : var.roles.algorithm_processor.resources.slices == 1
    error_message = "roles.algorithm_processor.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.algorithm_processor.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.algorithm_processor.colocation_group)) && !can(regex("_[0-9]+$", var.roles.algorithm_processor.colocation_group)) && !contains(keys(var.roles), var.roles.algorithm_processor.colocation_group)
    error_message = "roles.algorithm_processor.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.algorithm_processor.colocation_group == null || !contains(keys(local.roles), "algorithm_processor") ? true : local.roles.algorithm_processor.count == local.roles[local.grouped[var.roles.algorithm_processor.colocation_group][0]].count
    error_message = "roles.algorithm_processor.colocation_group: the group has ${try(local.roles.algorithm_processor.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.algorithm_processor.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.algorithm_processor.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.algorithm_processor.colocation_group == null || !contains(keys(local.roles), "algorithm_processor") ? true : local.roles.algorithm_processor.python == local.roles[local.grouped[var.roles.algorithm_processor.colocation_group][0]].python
    error_message = "roles.algorithm_processor.colocation_group: this role runs in ${try(local.roles.algorithm_processor.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.algorithm_processor.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.algorithm_processor.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.algorithm_processor.command == null || var.roles.algorithm_processor.colocation_group == null
    error_message = "roles.algorithm_processor.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.algorithm_processor.resources) : value == null]) || try(local.owners[var.roles.algorithm_processor.colocation_group].resources == "algorithm_processor", true)
    error_message = "roles.algorithm_processor.resources: ${try(local.owners[var.roles.algorithm_processor.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.algorithm_processor.reservation == null || try(local.owners[var.roles.algorithm_processor.colocation_group].reservation == "algorithm_processor", true)
    error_message = "roles.algorithm_processor.reservation: ${try(local.owners[var.roles.algorithm_processor.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.algorithm_processor.health) : value == null]) || try(local.owners[var.roles.algorithm_processor.colocation_group].health == "algorithm_processor", true)
    error_message = "roles.algorithm_processor.health: ${try(local.owners[var.roles.algorithm_processor.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.algorithm_processor.retries) : value == null]) || try(local.owners[var.roles.algorithm_processor.colocation_group].retries == "algorithm_processor", true)
    error_message = "roles.algorithm_processor.retries: ${try(local.owners[var.roles.algorithm_processor.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.trajectory_pool.count == null ? true : var.roles.trajectory_pool.count >= 1 && floor(var.roles.trajectory_pool.count) == var.roles.trajectory_pool.count
    error_message = "roles.trajectory_pool.count: want a whole number from 1."
  }

  validation {
    condition     = var.roles.trajectory_pool.resources.slices == null ? true : var.roles.trajectory_pool.resources.slices == 1
    error_message = "roles.trajectory_pool.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.trajectory_pool.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.trajectory_pool.colocation_group)) && !can(regex("_[0-9]+$", var.roles.trajectory_pool.colocation_group)) && !contains(keys(var.roles), var.roles.trajectory_pool.colocation_group)
    error_message = "roles.trajectory_pool.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.trajectory_pool.colocation_group == null || !contains(keys(local.roles), "trajectory_pool") ? true : local.roles.trajectory_pool.count == local.roles[local.grouped[var.roles.trajectory_pool.colocation_group][0]].count
    error_message = "roles.trajectory_pool.colocation_group: the group has ${try(local.roles.trajectory_pool.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.trajectory_pool.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.trajectory_pool.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.trajectory_pool.colocation_group == null || !contains(keys(local.roles), "trajectory_pool") ? true : local.roles.trajectory_pool.python == local.roles[local.grouped[var.roles.trajectory_pool.colocation_group][0]].python
    error_message = "roles.trajectory_pool.colocation_group: this role runs in ${try(local.roles.trajectory_pool.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.trajectory_pool.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.trajectory_pool.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.trajectory_pool.command == null || var.roles.trajectory_pool.colocation_group == null
    error_message = "roles.trajectory_pool.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.trajectory_pool.resources) : value == null]) || try(local.owners[var.roles.trajectory_pool.colocation_group].resources == "trajectory_pool", true)
    error_message = "roles.trajectory_pool.resources: ${try(local.owners[var.roles.trajectory_pool.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.trajectory_pool.reservation == null || try(local.owners[var.roles.trajectory_pool.colocation_group].reservation == "trajectory_pool", true)
    error_message = "roles.trajectory_pool.reservation: ${try(local.owners[var.roles.trajectory_pool.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.trajectory_pool.health) : value == null]) || try(local.owners[var.roles.trajectory_pool.colocation_group].health == "trajectory_pool", true)
    error_message = "roles.trajectory_pool.health: ${try(local.owners[var.roles.trajectory_pool.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.trajectory_pool.retries) : value == null]) || try(local.owners[var.roles.trajectory_pool.colocation_group].retries == "trajectory_pool", true)
    error_message = "roles.trajectory_pool.retries: ${try(local.owners[var.roles.trajectory_pool.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.train_batch_pool.count == null ? true : var.roles.train_batch_pool.count == 1
    error_message = "roles.train_batch_pool.count: a run has one: leave the count out."
  }

  validation {
    condition     = var.roles.train_batch_pool.resources.slices == null ? true : var.roles.train_batch_pool.resources.slices == 1
    error_message = "roles.train_batch_pool.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.train_batch_pool.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.train_batch_pool.colocation_group)) && !can(regex("_[0-9]+$", var.roles.train_batch_pool.colocation_group)) && !contains(keys(var.roles), var.roles.train_batch_pool.colocation_group)
    error_message = "roles.train_batch_pool.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.train_batch_pool.colocation_group == null || !contains(keys(local.roles), "train_batch_pool") ? true : local.roles.train_batch_pool.count == local.roles[local.grouped[var.roles.train_batch_pool.colocation_group][0]].count
    error_message = "roles.train_batch_pool.colocation_group: the group has ${try(local.roles.train_batch_pool.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.train_batch_pool.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.train_batch_pool.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.train_batch_pool.colocation_group == null || !contains(keys(local.roles), "train_batch_pool") ? true : local.roles.train_batch_pool.python == local.roles[local.grouped[var.roles.train_batch_pool.colocation_group][0]].python
    error_message = "roles.train_batch_pool.colocation_group: this role runs in ${try(local.roles.train_batch_pool.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.train_batch_pool.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.train_batch_pool.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.train_batch_pool.command == null || var.roles.train_batch_pool.colocation_group == null
    error_message = "roles.train_batch_pool.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_batch_pool.resources) : value == null]) || try(local.owners[var.roles.train_batch_pool.colocation_group].resources == "train_batch_pool", true)
    error_message = "roles.train_batch_pool.resources: ${try(local.owners[var.roles.train_batch_pool.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.train_batch_pool.reservation == null || try(local.owners[var.roles.train_batch_pool.colocation_group].reservation == "train_batch_pool", true)
    error_message = "roles.train_batch_pool.reservation: ${try(local.owners[var.roles.train_batch_pool.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_batch_pool.health) : value == null]) || try(local.owners[var.roles.train_batch_pool.colocation_group].health == "train_batch_pool", true)
    error_message = "roles.train_batch_pool.health: ${try(local.owners[var.roles.train_batch_pool.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_batch_pool.retries) : value == null]) || try(local.owners[var.roles.train_batch_pool.colocation_group].retries == "train_batch_pool", true)
    error_message = "roles.train_batch_pool.retries: ${try(local.owners[var.roles.train_batch_pool.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.weight_sync_controller.count == null ? true : var.roles.weight_sync_controller.count == 1
    error_message = "roles.weight_sync_controller.count: a run has one: leave the count out."
  }

  validation {
    condition     = var.roles.weight_sync_controller.resources.slices == null ? true : var.roles.weight_sync_controller.resources.slices == 1
    error_message = "roles.weight_sync_controller.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.weight_sync_controller.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.weight_sync_controller.colocation_group)) && !can(regex("_[0-9]+$", var.roles.weight_sync_controller.colocation_group)) && !contains(keys(var.roles), var.roles.weight_sync_controller.colocation_group)
    error_message = "roles.weight_sync_controller.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.weight_sync_controller.colocation_group == null || !contains(keys(local.roles), "weight_sync_controller") ? true : local.roles.weight_sync_controller.count == local.roles[local.grouped[var.roles.weight_sync_controller.colocation_group][0]].count
    error_message = "roles.weight_sync_controller.colocation_group: the group has ${try(local.roles.weight_sync_controller.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.weight_sync_controller.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.weight_sync_controller.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.weight_sync_controller.colocation_group == null || !contains(keys(local.roles), "weight_sync_controller") ? true : local.roles.weight_sync_controller.python == local.roles[local.grouped[var.roles.weight_sync_controller.colocation_group][0]].python
    error_message = "roles.weight_sync_controller.colocation_group: this role runs in ${try(local.roles.weight_sync_controller.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.weight_sync_controller.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.weight_sync_controller.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.weight_sync_controller.command == null || var.roles.weight_sync_controller.colocation_group == null
    error_message = "roles.weight_sync_controller.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.weight_sync_controller.resources) : value == null]) || try(local.owners[var.roles.weight_sync_controller.colocation_group].resources == "weight_sync_controller", true)
    error_message = "roles.weight_sync_controller.resources: ${try(local.owners[var.roles.weight_sync_controller.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.weight_sync_controller.reservation == null || try(local.owners[var.roles.weight_sync_controller.colocation_group].reservation == "weight_sync_controller", true)
    error_message = "roles.weight_sync_controller.reservation: ${try(local.owners[var.roles.weight_sync_controller.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.weight_sync_controller.health) : value == null]) || try(local.owners[var.roles.weight_sync_controller.colocation_group].health == "weight_sync_controller", true)
    error_message = "roles.weight_sync_controller.health: ${try(local.owners[var.roles.weight_sync_controller.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.weight_sync_controller.retries) : value == null]) || try(local.owners[var.roles.weight_sync_controller.colocation_group].retries == "weight_sync_controller", true)
    error_message = "roles.weight_sync_controller.retries: ${try(local.owners[var.roles.weight_sync_controller.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.data_loader.count == null ? true : var.roles.data_loader.count == 1
    error_message = "roles.data_loader.count: a run has one: leave the count out."
  }

  validation {
    condition     = var.roles.data_loader.resources.slices == null ? true : var.roles.data_loader.resources.slices == 1
    error_message = "roles.data_loader.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.data_loader.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.data_loader.colocation_group)) && !can(regex("_[0-9]+$", var.roles.data_loader.colocation_group)) && !contains(keys(var.roles), var.roles.data_loader.colocation_group)
    error_message = "roles.data_loader.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.data_loader.colocation_group == null || !contains(keys(local.roles), "data_loader") ? true : local.roles.data_loader.count == local.roles[local.grouped[var.roles.data_loader.colocation_group][0]].count
    error_message = "roles.data_loader.colocation_group: the group has ${try(local.roles.data_loader.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.data_loader.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.data_loader.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.data_loader.colocation_group == null || !contains(keys(local.roles), "data_loader") ? true : local.roles.data_loader.python == local.roles[local.grouped[var.roles.data_loader.colocation_group][0]].python
    error_message = "roles.data_loader.colocation_group: this role runs in ${try(local.roles.data_loader.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.data_loader.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.data_loader.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.data_loader.command == null || var.roles.data_loader.colocation_group == null
    error_message = "roles.data_loader.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.data_loader.resources) : value == null]) || try(local.owners[var.roles.data_loader.colocation_group].resources == "data_loader", true)
    error_message = "roles.data_loader.resources: ${try(local.owners[var.roles.data_loader.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.data_loader.reservation == null || try(local.owners[var.roles.data_loader.colocation_group].reservation == "data_loader", true)
    error_message = "roles.data_loader.reservation: ${try(local.owners[var.roles.data_loader.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.data_loader.health) : value == null]) || try(local.owners[var.roles.data_loader.colocation_group].health == "data_loader", true)
    error_message = "roles.data_loader.health: ${try(local.owners[var.roles.data_loader.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.data_loader.retries) : value == null]) || try(local.owners[var.roles.data_loader.colocation_group].retries == "data_loader", true)
    error_message = "roles.data_loader.retries: ${try(local.owners[var.roles.data_loader.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.validate_dataloader.count == null ? true : var.roles.validate_dataloader.count == local.counts.validate_dataloader
    error_message = "roles.validate_dataloader.count: a run has one with validate.data.type and none without: leave the count out, this run has ${local.counts.validate_dataloader}."
  }

  validation {
    condition     = var.roles.validate_dataloader.resources.slices == null ? true : var.roles.validate_dataloader.resources.slices == 1
    error_message = "roles.validate_dataloader.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.validate_dataloader.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.validate_dataloader.colocation_group)) && !can(regex("_[0-9]+$", var.roles.validate_dataloader.colocation_group)) && !contains(keys(var.roles), var.roles.validate_dataloader.colocation_group)
    error_message = "roles.validate_dataloader.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.validate_dataloader.colocation_group == null || !contains(keys(local.roles), "validate_dataloader") ? true : local.roles.validate_dataloader.count == local.roles[local.grouped[var.roles.validate_dataloader.colocation_group][0]].count
    error_message = "roles.validate_dataloader.colocation_group: the group has ${try(local.roles.validate_dataloader.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.validate_dataloader.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.validate_dataloader.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.validate_dataloader.colocation_group == null || !contains(keys(local.roles), "validate_dataloader") ? true : local.roles.validate_dataloader.python == local.roles[local.grouped[var.roles.validate_dataloader.colocation_group][0]].python
    error_message = "roles.validate_dataloader.colocation_group: this role runs in ${try(local.roles.validate_dataloader.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.validate_dataloader.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.validate_dataloader.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.validate_dataloader.command == null || var.roles.validate_dataloader.colocation_group == null
    error_message = "roles.validate_dataloader.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.validate_dataloader.resources) : value == null]) || try(local.owners[var.roles.validate_dataloader.colocation_group].resources == "validate_dataloader", true)
    error_message = "roles.validate_dataloader.resources: ${try(local.owners[var.roles.validate_dataloader.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.validate_dataloader.reservation == null || try(local.owners[var.roles.validate_dataloader.colocation_group].reservation == "validate_dataloader", true)
    error_message = "roles.validate_dataloader.reservation: ${try(local.owners[var.roles.validate_dataloader.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.validate_dataloader.health) : value == null]) || try(local.owners[var.roles.validate_dataloader.colocation_group].health == "validate_dataloader", true)
    error_message = "roles.validate_dataloader.health: ${try(local.owners[var.roles.validate_dataloader.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.validate_dataloader.retries) : value == null]) || try(local.owners[var.roles.validate_dataloader.colocation_group].retries == "validate_dataloader", true)
    error_message = "roles.validate_dataloader.retries: ${try(local.owners[var.roles.validate_dataloader.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.validator.count == null ? true : var.roles.validator.count == local.counts.validator
    error_message = "roles.validator.count: a run has one with validate.data.type and none without: leave the count out, this run has ${local.counts.validator}."
  }

  validation {
    condition     = var.roles.validator.resources.slices == null ? true : var.roles.validator.resources.slices == 1
    error_message = "roles.validator.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.validator.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.validator.colocation_group)) && !can(regex("_[0-9]+$", var.roles.validator.colocation_group)) && !contains(keys(var.roles), var.roles.validator.colocation_group)
    error_message = "roles.validator.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.validator.colocation_group == null || !contains(keys(local.roles), "validator") ? true : local.roles.validator.count == local.roles[local.grouped[var.roles.validator.colocation_group][0]].count
    error_message = "roles.validator.colocation_group: the group has ${try(local.roles.validator.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.validator.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.validator.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.validator.colocation_group == null || !contains(keys(local.roles), "validator") ? true : local.roles.validator.python == local.roles[local.grouped[var.roles.validator.colocation_group][0]].python
    error_message = "roles.validator.colocation_group: this role runs in ${try(local.roles.validator.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.validator.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.validator.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.validator.command == null || var.roles.validator.colocation_group == null
    error_message = "roles.validator.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.validator.resources) : value == null]) || try(local.owners[var.roles.validator.colocation_group].resources == "validator", true)
    error_message = "roles.validator.resources: ${try(local.owners[var.roles.validator.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.validator.reservation == null || try(local.owners[var.roles.validator.colocation_group].reservation == "validator", true)
    error_message = "roles.validator.reservation: ${try(local.owners[var.roles.validator.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.validator.health) : value == null]) || try(local.owners[var.roles.validator.colocation_group].health == "validator", true)
    error_message = "roles.validator.health: ${try(local.owners[var.roles.validator.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.validator.retries) : value == null]) || try(local.owners[var.roles.validator.colocation_group].retries == "validator", true)
    error_message = "roles.validator.retries: ${try(local.owners[var.roles.validator.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.activity_tracker.count == null ? true : contains([0, 1], var.roles.activity_tracker.count)
    error_message = "roles.activity_tracker.count: a run has at most one."
  }

  validation {
    condition     = var.roles.activity_tracker.resources.slices == null ? true : var.roles.activity_tracker.resources.slices == 1
    error_message = "roles.activity_tracker.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.activity_tracker.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.activity_tracker.colocation_group)) && !can(regex("_[0-9]+$", var.roles.activity_tracker.colocation_group)) && !contains(keys(var.roles), var.roles.activity_tracker.colocation_group)
    error_message = "roles.activity_tracker.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.activity_tracker.colocation_group == null || !contains(keys(local.roles), "activity_tracker") ? true : local.roles.activity_tracker.count == local.roles[local.grouped[var.roles.activity_tracker.colocation_group][0]].count
    error_message = "roles.activity_tracker.colocation_group: the group has ${try(local.roles.activity_tracker.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.activity_tracker.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.activity_tracker.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.activity_tracker.colocation_group == null || !contains(keys(local.roles), "activity_tracker") ? true : local.roles.activity_tracker.python == local.roles[local.grouped[var.roles.activity_tracker.colocation_group][0]].python
    error_message = "roles.activity_tracker.colocation_group: this role runs in ${try(local.roles.activity_tracker.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.activity_tracker.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.activity_tracker.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.activity_tracker.command == null || var.roles.activity_tracker.colocation_group == null
    error_message = "roles.activity_tracker.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.activity_tracker.resources) : value == null]) || try(local.owners[var.roles.activity_tracker.colocation_group].resources == "activity_tracker", true)
    error_message = "roles.activity_tracker.resources: ${try(local.owners[var.roles.activity_tracker.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.activity_tracker.reservation == null || try(local.owners[var.roles.activity_tracker.colocation_group].reservation == "activity_tracker", true)
    error_message = "roles.activity_tracker.reservation: ${try(local.owners[var.roles.activity_tracker.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.activity_tracker.health) : value == null]) || try(local.owners[var.roles.activity_tracker.colocation_group].health == "activity_tracker", true)
    error_message = "roles.activity_tracker.health: ${try(local.owners[var.roles.activity_tracker.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.activity_tracker.retries) : value == null]) || try(local.owners[var.roles.activity_tracker.colocation_group].retries == "activity_tracker", true)
    error_message = "roles.activity_tracker.retries: ${try(local.owners[var.roles.activity_tracker.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.controller.count == null ? true : var.roles.controller.count == 1
    error_message = "roles.controller.count: a run has one: leave the count out."
  }

  validation {
    condition     = var.roles.controller.resources.slices == null ? true : var.roles.controller.resources.slices == 1
    error_message = "roles.controller.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.controller.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.controller.colocation_group)) && !can(regex("_[0-9]+$", var.roles.controller.colocation_group)) && !contains(keys(var.roles), var.roles.controller.colocation_group)
    error_message = "roles.controller.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.controller.colocation_group == null || !contains(keys(local.roles), "controller") ? true : local.roles.controller.count == local.roles[local.grouped[var.roles.controller.colocation_group][0]].count
    error_message = "roles.controller.colocation_group: the group has ${try(local.roles.controller.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.controller.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.controller.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.controller.colocation_group == null || !contains(keys(local.roles), "controller") ? true : local.roles.controller.python == local.roles[local.grouped[var.roles.controller.colocation_group][0]].python
    error_message = "roles.controller.colocation_group: this role runs in ${try(local.roles.controller.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.controller.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.controller.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.controller.command == null || var.roles.controller.colocation_group == null
    error_message = "roles.controller.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.controller.resources) : value == null]) || try(local.owners[var.roles.controller.colocation_group].resources == "controller", true)
    error_message = "roles.controller.resources: ${try(local.owners[var.roles.controller.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.controller.reservation == null || try(local.owners[var.roles.controller.colocation_group].reservation == "controller", true)
    error_message = "roles.controller.reservation: ${try(local.owners[var.roles.controller.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.controller.health) : value == null]) || try(local.owners[var.roles.controller.colocation_group].health == "controller", true)
    error_message = "roles.controller.health: ${try(local.owners[var.roles.controller.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.controller.retries) : value == null]) || try(local.owners[var.roles.controller.colocation_group].retries == "controller", true)
    error_message = "roles.controller.retries: ${try(local.owners[var.roles.controller.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.experiment_logger.count == null ? true : contains([0, 1], var.roles.experiment_logger.count)
    error_message = "roles.experiment_logger.count: a run has at most one."
  }

  validation {
    condition     = var.roles.experiment_logger.resources.slices == null ? true : var.roles.experiment_logger.resources.slices == 1
    error_message = "roles.experiment_logger.resources.slices: a role is one process. Only services may be gangs."
  }

  validation {
    condition     = var.roles.experiment_logger.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.experiment_logger.colocation_group)) && !can(regex("_[0-9]+$", var.roles.experiment_logger.colocation_group)) && !contains(keys(var.roles), var.roles.experiment_logger.colocation_group)
    error_message = "roles.experiment_logger.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.experiment_logger.colocation_group == null || !contains(keys(local.roles), "experiment_logger") ? true : local.roles.experiment_logger.count == local.roles[local.grouped[var.roles.experiment_logger.colocation_group][0]].count
    error_message = "roles.experiment_logger.colocation_group: the group has ${try(local.roles.experiment_logger.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.experiment_logger.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.experiment_logger.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.experiment_logger.colocation_group == null || !contains(keys(local.roles), "experiment_logger") ? true : local.roles.experiment_logger.python == local.roles[local.grouped[var.roles.experiment_logger.colocation_group][0]].python
    error_message = "roles.experiment_logger.colocation_group: this role runs in ${try(local.roles.experiment_logger.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.experiment_logger.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.experiment_logger.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.experiment_logger.command == null || var.roles.experiment_logger.colocation_group == null
    error_message = "roles.experiment_logger.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.experiment_logger.resources) : value == null]) || try(local.owners[var.roles.experiment_logger.colocation_group].resources == "experiment_logger", true)
    error_message = "roles.experiment_logger.resources: ${try(local.owners[var.roles.experiment_logger.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.experiment_logger.reservation == null || try(local.owners[var.roles.experiment_logger.colocation_group].reservation == "experiment_logger", true)
    error_message = "roles.experiment_logger.reservation: ${try(local.owners[var.roles.experiment_logger.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.experiment_logger.health) : value == null]) || try(local.owners[var.roles.experiment_logger.colocation_group].health == "experiment_logger", true)
    error_message = "roles.experiment_logger.health: ${try(local.owners[var.roles.experiment_logger.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.experiment_logger.retries) : value == null]) || try(local.owners[var.roles.experiment_logger.colocation_group].retries == "experiment_logger", true)
    error_message = "roles.experiment_logger.retries: ${try(local.owners[var.roles.experiment_logger.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.train_service.count == null ? true : var.roles.train_service.count >= 0 && floor(var.roles.train_service.count) == var.roles.train_service.count
    error_message = "roles.train_service.count: want a whole number from 0."
  }

  validation {
    condition     = var.roles.train_service.colocation_group == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", var.roles.train_service.colocation_group)) && !can(regex("_[0-9]+$", var.roles.train_service.colocation_group)) && !contains(keys(var.roles), var.roles.train_service.colocation_group)
    error_message = "roles.train_service.colocation_group: want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _."
  }

  validation {
    condition     = var.roles.train_service.colocation_group == null || !contains(keys(local.roles), "train_service") ? true : local.roles.train_service.count == local.roles[local.grouped[var.roles.train_service.colocation_group][0]].count
    error_message = "roles.train_service.colocation_group: the group has ${try(local.roles.train_service.count, "")} of this role and ${try(local.roles[local.grouped[var.roles.train_service.colocation_group][0]].count, "")} of ${try(local.grouped[var.roles.train_service.colocation_group][0], "")}, and each of its processes has one of every role: write equal counts, or other groups."
  }

  validation {
    condition     = var.roles.train_service.colocation_group == null || !contains(keys(local.roles), "train_service") ? true : local.roles.train_service.python == local.roles[local.grouped[var.roles.train_service.colocation_group][0]].python
    error_message = "roles.train_service.colocation_group: this role runs in ${try(local.roles.train_service.python ? "Python" : "Go", "")} and ${try(local.grouped[var.roles.train_service.colocation_group][0], "")} of the same group in ${try(local.roles[local.grouped[var.roles.train_service.colocation_group][0]].python ? "Python" : "Go", "")}, and a process runs one program: write other groups."
  }

  validation {
    condition     = var.roles.train_service.command == null || var.roles.train_service.colocation_group == null
    error_message = "roles.train_service.command: the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_service.resources) : value == null]) || try(local.owners[var.roles.train_service.colocation_group].resources == "train_service", true)
    error_message = "roles.train_service.resources: ${try(local.owners[var.roles.train_service.colocation_group].resources, "")} of the same colocation group has them: one role states the resources of its processes."
  }

  validation {
    condition     = var.roles.train_service.reservation == null || try(local.owners[var.roles.train_service.colocation_group].reservation == "train_service", true)
    error_message = "roles.train_service.reservation: ${try(local.owners[var.roles.train_service.colocation_group].reservation, "")} of the same colocation group has them: one role states the reservation of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_service.health) : value == null]) || try(local.owners[var.roles.train_service.colocation_group].health == "train_service", true)
    error_message = "roles.train_service.health: ${try(local.owners[var.roles.train_service.colocation_group].health, "")} of the same colocation group has them: one role states the health of its processes."
  }

  validation {
    condition     = alltrue([for value in values(var.roles.train_service.retries) : value == null]) || try(local.owners[var.roles.train_service.colocation_group].retries == "train_service", true)
    error_message = "roles.train_service.retries: ${try(local.owners[var.roles.train_service.colocation_group].retries, "")} of the same colocation group has them: one role states the retries of its processes."
  }

  validation {
    condition     = var.roles.inference_service.count == null ? true : var.roles.inference_service.count >= 0 && floor(var.roles.inference_service.count) == var.roles.inference_service.count
    error_message = "roles.inference_service.count: want a whole number from 0."
  }

  validation {
    condition     = var.roles.inference_service.colocation_group == null
    error_message = "roles.inference_service.colocation_group: an inference service has processes of its own, since rollout workers start once they know its address: leave the group out."
  }
}
