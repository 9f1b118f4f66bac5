variable "secret_names" {
  description = "a regular expression of names of environment variables that hold secrets"
  type        = string
  default     = "(?i)(token|secret|password|passwd|api_?key|credential)"
}

policy "secrets" {
  description = "secrets come from sensitive variables, and are not written into files"

  rule {
    for_each = merge([
      for j in plan.jobs : { for name, value in j.environment.env : "${j.address} ${name}" => { address = j.address, name = name, sensitive = issensitive(value) } }
    ]...)
    condition     = each.value.sensitive || !can(regex(var.secret_names, each.value.name))
    error_message = "${each.value.address} has the environment variable ${each.value.name} in clear: give it the value of a variable with sensitive = true."
  }
}
