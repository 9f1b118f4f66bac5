output "config" {
  value       = jsonencode(local.config)
  description = "the configuration that the roles read, without the addresses of inference services"
}

output "out" {
  value       = local.absolute.out
  description = "directory of the run"
}

output "processes" {
  value       = { for name, process in local.processes : name => process.roles }
  description = "the roles of each process"
}
