# What a run needs beside the sections of its configuration (sections.hcl) and its roles (roles.hcl).

variable "name" {
  type        = string
  default     = "nexrl"
  description = "of the run: its namespace, and experiment_name without one"
  validation {
    condition     = can(regex("^[A-Za-z_][A-Za-z0-9_-]{0,62}$", var.name))
    error_message = "name: want a letter or underscore, then letters, digits, underscores and hyphens."
  }
}

variable "project" {
  type        = string
  default     = null
  description = "directory with the Python code of the run, shipped to the hosts of Python roles"
}

variable "image" {
  type        = string
  default     = null
  description = "container image of Python roles"
}

variable "uv" {
  type = object({
    extras = optional(list(string))
    groups = optional(list(string))
    python = optional(string)
  })
  default     = null
  description = "packages of Python roles, from the uv.lock of project"
}

variable "python" {
  type        = list(string)
  default     = ["python3"]
  nullable    = false
  description = "how to start Python, with the package fray installed"
}

variable "env" {
  type        = map(string)
  default     = {}
  nullable    = false
  description = "environment variables of all roles"
}

variable "same_region" {
  type        = bool
  default     = true
  description = "keep all slices of the run in one region"
}

variable "check_paths" {
  type        = bool
  default     = true
  nullable    = false
  description = "paths of data and checkpoints must exist where fray plans; false where only the hosts have them"
}
