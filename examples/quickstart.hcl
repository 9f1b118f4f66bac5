# Count the words of a book in parts, side by side, then add the parts up.
# Needs nothing but fray and a POSIX shell: fray apply --wait=complete examples/quickstart.hcl

fray {
  state "local" {
    path = ".fray/quickstart"
  }
}

variable "shards" {
  type        = number
  default     = 4
  description = "how many jobs share the counting"

  validation {
    condition     = var.shards >= 1 && var.shards <= 64
    error_message = "Between 1 and 64 shards, please."
  }
}

variable "out" {
  type        = string
  default     = "out/quickstart"
  description = "directory for the results, relative to this file"
}

locals {
  out = abspath(var.out)
}

job "count" {
  count   = var.shards
  command = ["sh", "count.sh"]

  environment {
    project = "quickstart"
    env = {
      CORPUS = abspath("data/opticks.txt")
      OUT    = local.out
      SHARD  = count.index
      SHARDS = var.shards
    }
  }
}

job "merge" {
  command    = ["sh", "merge.sh"]
  depends_on = [job.count]

  environment {
    project = "quickstart"
    env = {
      OUT    = local.out
      SHARDS = var.shards
    }
  }
}

output "counts" {
  value       = "${local.out}/counts.tsv"
  description = "a word and its count per line, the most frequent first"
}
