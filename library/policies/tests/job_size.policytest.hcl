case "small" {
  policies = ["job_size"]
  plan     = { jobs = [{ address = "job.a", chips = 1024, resources = { slices = 8 } }] }
}

case "many slices" {
  policies      = ["job_size"]
  expect_denied = ["job_size"]
  plan          = { jobs = [{ address = "job.a", resources = { slices = 9 } }] }
}

case "many chips" {
  policies      = ["job_size"]
  inputs        = { max_chips_per_job = 64 }
  expect_denied = ["job_size"]
  plan          = { jobs = [{ address = "job.a", chips = 65 }] }
}
