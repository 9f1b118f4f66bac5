case "short" {
  policies = ["idle_timeouts"]
  inputs   = { max_ttl = "168h" }
  plan = {
    reservations = [{ address = "reservation.r", idle_timeout = "30m", ttl = "24h" }]
    namespaces   = [{ address = "namespace.n", idle_timeout = "1h" }]
  }
}

case "long" {
  policies      = ["idle_timeouts"]
  expect_denied = ["idle_timeouts"]
  plan          = { namespaces = [{ address = "namespace.n", idle_timeout = "2h" }] }
}

case "for ever" {
  policies      = ["idle_timeouts"]
  inputs        = { max_ttl = "168h" }
  expect_denied = ["idle_timeouts"]
  plan          = { reservations = [{ address = "reservation.r" }] }
}
