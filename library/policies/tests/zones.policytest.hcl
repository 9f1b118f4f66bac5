case "allowed" {
  policies = ["zones"]
  inputs   = { allowed_zones = ["us-east5-a", "us-east5-b"] }
  plan = {
    providers    = [{ name = "gcp", zones = ["us-east5-b"] }]
    jobs         = [{ address = "job.a", resources = { provider = "gcp", zones = ["us-east5-a"] } }, { address = "job.b", resources = { provider = "gcp" } }]
    reservations = [{ address = "reservation.r", provider = "gcp", zones = ["us-east5-b"] }]
  }
}

case "another zone" {
  policies      = ["zones"]
  inputs        = { allowed_zones = ["us-east5-a"] }
  expect_denied = ["zones"]
  plan          = { jobs = [{ address = "job.a", resources = { provider = "gcp", zones = ["us-east5-a", "europe-west4-a"] } }] }
  expect_message {
    policy = "zones"
    text   = "job.a may come up in europe-west4-a"
  }
}

case "any zone" {
  policies      = ["zones"]
  inputs        = { allowed_zones = ["us-east5-a"] }
  expect_denied = ["zones"]
  plan          = { reservations = [{ address = "reservation.r", provider = "gcp" }] }
}

case "the provider's zones" {
  policies      = ["zones"]
  inputs        = { allowed_zones = ["us-east5-a"] }
  expect_denied = ["zones"]
  plan = {
    providers = [{ name = "gcp", zones = ["us-east5-a", "us-west4-a"] }]
    jobs      = [{ address = "job.a", resources = { provider = "gcp" } }]
  }
}

case "on this machine" {
  policies = ["zones"]
  inputs   = { allowed_zones = ["us-east5-a"] }
  plan     = { jobs = [{ address = "job.a", resources = { provider = "local" } }] }
}
