case "pinned" {
  policies = ["images"]
  plan     = { jobs = [{ address = "job.a", environment = { image = "gcr.io/acme/train@sha256:${sha256("x")}" } }, { address = "job.b" }] }
}

case "a tag" {
  policies      = ["images"]
  expect_denied = ["images"]
  plan          = { jobs = [{ address = "job.a", environment = { image = "gcr.io/acme/train:v1" } }] }
}

case "another registry" {
  policies      = ["images"]
  inputs        = { allowed_registries = ["gcr.io/acme/"] }
  expect_denied = ["images"]
  plan          = { jobs = [{ address = "job.a", environment = { image = "docker.io/train@sha256:${sha256("x")}" } }] }
}
