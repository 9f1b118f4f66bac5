# A reinforcement learning run: one configuration, and one job for each process of its roles.
# docs/guides/nexrl.md describes it.

locals {
  # Without a value of their own, keys have the defaults of fray rl.
  given = {
    for name, section in {
      data              = var.data
      rollout_worker    = var.rollout_worker
      trajectory_pool   = var.trajectory_pool
      algorithm         = var.algorithm
      train_batch_pool  = var.train_batch_pool
      train_worker      = var.train_worker
      weight            = var.weight
      train_service     = var.service.train_service
      inference_service = var.service.inference_service
      validation_data   = var.validate.data
      eval              = var.validate.eval
    } : name => merge(section.args, { for key, value in section : key => value if key != "args" && value != null })
  }

  absolute = { for name, path in {
    out             = coalesce(var.out, "out/${var.name}")
    journal         = var.journal
    dump            = var.dump.path
    data            = var.data.data_path
    validation_data = var.validate.data.data_path
    checkpoints     = var.train_worker.checkpoint_path
    sync_weights    = var.train_worker.sync_weight_path
    resume          = var.resume.resume_path
    metrics         = var.logger.path
  } : name => path == null ? null : strcontains(path, "://") ? path : abspath(path) }

  settings = {
    launch_mode      = coalesce(var.launch_mode, "fray")
    project_name     = coalesce(var.project_name, "nexrl")
    experiment_name  = coalesce(var.experiment_name, var.name)
    seed             = coalesce(var.seed, 0)
    recovery         = coalesce(var.recovery, "journal")
    out              = local.absolute.out
    journal          = local.absolute.journal
    dump             = { path = local.absolute.dump }
    data             = merge(local.given.data, { data_path = local.absolute.data })
    rollout_worker   = local.given.rollout_worker
    trajectory_pool  = local.given.trajectory_pool
    algorithm        = local.given.algorithm
    train_batch_pool = local.given.train_batch_pool
    train_worker     = merge(local.given.train_worker, { checkpoint_path = local.absolute.checkpoints, sync_weight_path = local.absolute.sync_weights })
    weight           = local.given.weight
    service          = { train_service = local.given.train_service, inference_service = local.given.inference_service }
    validate = {
      validate_before_train = var.validate.validate_before_train
      data                  = merge(local.given.validation_data, { data_path = local.absolute.validation_data })
      eval                  = local.given.eval
    }
    resume          = merge(var.resume, { resume_path = local.absolute.resume })
    logger          = merge(var.logger, { path = local.absolute.metrics })
    runtime_monitor = var.runtime_monitor
    roles           = { for name, role in var.roles : name => { count = coalesce(role.count, local.counts[name]), colocation_group = role.colocation_group } }
  }

  # A run that has ended does not begin again, so that a process which is started later ends at once. Another configuration is another run.
  config = merge(local.settings, { run = join("-", compact([var.run, substr(sha256(jsonencode(local.settings)), 0, 16)])) })

  validates = var.validate.data.type != null
  backends  = var.logger.backend == null ? ["console"] : flatten([var.logger.backend])

  # How many of each role there are without a count: 0 where the controller's process does the work, too.
  counts = {
    rollout_worker         = coalesce(var.rollout_worker.num_workers, 1)
    train_worker           = coalesce(var.train_worker.num_workers, 1)
    algorithm_processor    = 1
    trajectory_pool        = 1
    train_batch_pool       = 1
    weight_sync_controller = 1
    data_loader            = 1
    validate_dataloader    = local.validates ? 1 : 0
    validator              = local.validates ? 1 : 0
    activity_tracker       = 0
    controller             = 1
    experiment_logger      = contains(local.backends, "wandb") ? 1 : 0
    train_service          = var.service.train_service.class != null || var.roles.train_service.command != null ? 1 : 0
    inference_service      = var.service.inference_service.class != null || var.roles.inference_service.command != null ? 1 : 0
  }

  # Roles that compute are programs in Python. The others are too if their type is a class.
  python = {
    rollout_worker      = true
    train_worker        = true
    algorithm_processor = true
    train_service       = true
    inference_service   = true
    experiment_logger   = true
    trajectory_pool     = strcontains(coalesce(var.trajectory_pool.type, "default"), ":")
    train_batch_pool    = strcontains(coalesce(var.train_batch_pool.type, "default"), ":")
    data_loader         = strcontains(coalesce(var.data.type, "mock"), ":")
    validate_dataloader = strcontains(coalesce(var.validate.data.type, "mock"), ":")
    validator           = strcontains(coalesce(var.validate.eval.type, "default"), ":")

    weight_sync_controller = strcontains(coalesce(var.weight.type, "default"), ":")
  }
  roles = { for name, role in var.roles : name => merge(role, {
    count  = coalesce(role.count, local.counts[name])
    python = lookup(local.python, name, false)
  }) if coalesce(role.count, local.counts[name]) > 0 }

  # Roles by the processes that they share: of a colocation group, or alone.
  groups = { for name, role in local.roles : coalesce(role.colocation_group, name) => name... if name != "inference_service" }

  # The colocation groups, each with its roles.
  grouped = { for name, role in local.roles : coalesce(role.colocation_group, "-") => name... if role.colocation_group != null }

  # Which roles state what of their processes, and of each group the role that does: the first one if none does.
  stated = { for name, role in local.roles : name => {
    resources   = anytrue([for value in values(role.resources) : value != null])
    health      = anytrue([for value in values(role.health) : value != null])
    retries     = anytrue([for value in values(role.retries) : value != null])
    reservation = role.reservation != null
  } }
  owners = { for group, names in local.groups : group => {
    for part in ["resources", "health", "retries", "reservation"] :
    part => concat([for name in names : name if local.stated[name][part]], [names[0]])[0]
  } }

  indexed = ["rollout_worker", "train_worker", "algorithm_processor", "train_service", "inference_service"]
  processes = merge([for group, names in local.groups : {
    for i in range(local.roles[names[0]].count) :
    (local.roles[names[0]].count > 1 || contains(local.indexed, group) ? "${group}_${i}" : group) => {
      roles       = [for name in names : "${name}:${i}"]
      index       = i
      python      = local.roles[names[0]].python
      command     = concat([for name in names : local.roles[name].command if local.roles[name].command != null], [null])[0]
      env         = merge([for name in names : local.roles[name].env]...)
      reservation = local.roles[local.owners[group].reservation].reservation
      resources   = local.roles[local.owners[group].resources].resources
      # Of a gang only the first task of a train service hosts an actor.
      health  = merge(local.roles[local.owners[group].health].health, { enabled = coalesce(local.roles[local.owners[group].health].health.enabled, group != "train_service") })
      retries = local.roles[local.owners[group].retries].retries
    }
  }]...)
  rollouts = { for name, process in local.processes : name => process if anytrue([for role in process.roles : startswith(role, "rollout_worker:")]) }
  others   = { for name, process in local.processes : name => process if !contains(keys(local.rollouts), name) }

  # Agents outlive fray apply, and one of an older fray does not set FRAY_PROGRAM.
  program = ["sh", "-c", "exec \"$${FRAY_PROGRAM:?is set by agents of this version of fray: end the slice by fray destroy and apply again}\" rl \"$@\"", "fray"]

  inference = { for i in range(lookup(local.roles, "inference_service", { count = 0 }).count) : "inference_service_${i}" => i }

  own = merge(var.env, { FRAY_RL_CONFIG = jsonencode(local.config) })
}

namespace "run" {
}

job_group "run" {
  namespace   = namespace.run
  same_region = var.same_region

  job "inference_service" {
    for_each   = local.inference
    command    = coalesce(var.roles.inference_service.command, concat(var.python, ["-m", "fray.rl", "inference_service:${each.value}"]))
    stop_grace = "30s"

    resources {
      reservation  = var.roles.inference_service.reservation
      cpu          = var.roles.inference_service.resources.cpu
      memory       = var.roles.inference_service.resources.memory
      disk         = var.roles.inference_service.resources.disk
      tpu          = var.roles.inference_service.resources.tpu
      accelerators = var.roles.inference_service.resources.accelerators
      machine_type = var.roles.inference_service.resources.machine_type
      slices       = var.roles.inference_service.resources.slices
      preemptible  = var.roles.inference_service.resources.preemptible
      zones        = var.roles.inference_service.resources.zones
      regions      = var.roles.inference_service.resources.regions
      ports        = ["actor", "http"]

      dynamic "gpu" {
        for_each = var.roles.inference_service.resources.gpu == null ? [] : [var.roles.inference_service.resources.gpu]
        content {
          type  = gpu.value.type
          count = gpu.value.count
        }
      }
    }

    environment {
      project = var.project
      image   = var.image
      env     = merge(local.own, var.roles.inference_service.env)

      dynamic "uv" {
        for_each = var.uv == null ? [] : [var.uv]
        content {
          extras = uv.value.extras
          groups = uv.value.groups
          python = uv.value.python
        }
      }
    }

    dynamic "health_check" {
      for_each = coalesce(var.roles.inference_service.health.enabled, true) ? [var.roles.inference_service.health] : []
      content {
        http         = "/readyz"
        port         = "actor"
        interval     = coalesce(health_check.value.interval, "5s")
        timeout      = coalesce(health_check.value.timeout, "5s")
        threshold    = health_check.value.threshold
        start_period = coalesce(health_check.value.start_period, "30m")
      }
    }

    retries {
      failure    = coalesce(var.roles.inference_service.retries.failure, 10)
      preemption = coalesce(var.roles.inference_service.retries.preemption, 1000)
    }
  }

  job "role" {
    for_each = local.others
    command = (
      each.value.command != null ? each.value.command :
      each.value.python ? concat(var.python, ["-m", "fray.rl"], each.value.roles) :
      concat(local.program, each.value.roles)
    )
    stop_grace = "30s"

    resources {
      reservation  = each.value.reservation
      cpu          = each.value.resources.cpu
      memory       = each.value.resources.memory
      disk         = each.value.resources.disk
      tpu          = each.value.resources.tpu
      accelerators = each.value.resources.accelerators
      machine_type = each.value.resources.machine_type
      slices       = each.value.resources.slices
      preemptible  = each.value.resources.preemptible
      zones        = each.value.resources.zones
      regions      = each.value.resources.regions
      ports        = ["actor"]

      dynamic "gpu" {
        for_each = each.value.resources.gpu == null ? [] : [each.value.resources.gpu]
        content {
          type  = gpu.value.type
          count = gpu.value.count
        }
      }
    }

    environment {
      project = each.value.python ? var.project : null
      image   = each.value.python ? var.image : null
      env     = merge(local.own, each.value.env)

      dynamic "uv" {
        for_each = each.value.python && var.uv != null ? [var.uv] : []
        content {
          extras = uv.value.extras
          groups = uv.value.groups
          python = uv.value.python
        }
      }
    }

    dynamic "health_check" {
      for_each = each.value.health.enabled ? [each.value.health] : []
      content {
        http         = "/readyz"
        port         = "actor"
        interval     = coalesce(health_check.value.interval, "5s")
        timeout      = coalesce(health_check.value.timeout, "5s")
        threshold    = health_check.value.threshold
        start_period = coalesce(health_check.value.start_period, "10m")
      }
    }

    retries {
      failure    = coalesce(each.value.retries.failure, 10)
      preemption = coalesce(each.value.retries.preemption, 1000)
    }
  }

  # What rolls out has the address of its inference service: it starts once that is ready, and again when it moves. A job waits for what
  # any of its instances reads, so these are a job of their own.
  job "rollout" {
    for_each = local.rollouts
    command = (
      each.value.command != null ? each.value.command :
      each.value.python ? concat(var.python, ["-m", "fray.rl"], each.value.roles) :
      concat(local.program, each.value.roles)
    )
    stop_grace = "30s"

    resources {
      reservation  = each.value.reservation
      cpu          = each.value.resources.cpu
      memory       = each.value.resources.memory
      disk         = each.value.resources.disk
      tpu          = each.value.resources.tpu
      accelerators = each.value.resources.accelerators
      machine_type = each.value.resources.machine_type
      slices       = each.value.resources.slices
      preemptible  = each.value.resources.preemptible
      zones        = each.value.resources.zones
      regions      = each.value.resources.regions
      ports        = ["actor"]

      dynamic "gpu" {
        for_each = each.value.resources.gpu == null ? [] : [each.value.resources.gpu]
        content {
          type  = gpu.value.type
          count = gpu.value.count
        }
      }
    }

    environment {
      project = each.value.python ? var.project : null
      image   = each.value.python ? var.image : null
      env     = merge(local.own, length(local.inference) == 0 ? {} : {
        FRAY_RL_CONFIG = jsonencode(merge(local.config, { service = merge(local.config.service, {
          inference_service = merge(local.config.service.inference_service, { url = local.urls[each.value.index % length(local.urls)] })
        }) }))
      }, each.value.env)

      dynamic "uv" {
        for_each = each.value.python && var.uv != null ? [var.uv] : []
        content {
          extras = uv.value.extras
          groups = uv.value.groups
          python = uv.value.python
        }
      }
    }

    dynamic "health_check" {
      for_each = each.value.health.enabled ? [each.value.health] : []
      content {
        http         = "/readyz"
        port         = "actor"
        interval     = coalesce(health_check.value.interval, "5s")
        timeout      = coalesce(health_check.value.timeout, "5s")
        threshold    = health_check.value.threshold
        start_period = coalesce(health_check.value.start_period, "10m")
      }
    }

    retries {
      failure    = coalesce(each.value.retries.failure, 10)
      preemption = coalesce(each.value.retries.preemption, 1000)
    }
  }
}

# What rules between sections read.
locals {
  key_list      = coalesce(var.trajectory_pool.key_list, [])
  group_size    = coalesce(var.trajectory_pool.group_size, 1)
  repeat_item   = coalesce(var.data.repeat_item, 1)
  loaded        = coalesce(var.data.batch_size, 32) * local.repeat_item
  exact_batches = var.trajectory_pool.check_batch_ready_function != "loaded_batch_finished"
  pools         = coalesce(var.roles.trajectory_pool.count, 1)
  own_pools     = strcontains("${coalesce(var.trajectory_pool.type, "default")}${coalesce(var.weight.type, "default")}", ":")
  own_code      = strcontains("${coalesce(var.trajectory_pool.type, "default")}${coalesce(var.data.type, "mock")}", ":")
}

locals {
  urls = [for name, i in local.inference : "http://${job_group.run.job.inference_service[name].address}:${job_group.run.job.inference_service[name].ports.http}"]
}
