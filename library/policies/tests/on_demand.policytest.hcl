case "spot" {
  policies = ["on_demand"]
  plan     = { total = { after = { chips = 256, spot_chips = 256 } } }
}

case "on demand" {
  policies      = ["on_demand"]
  inputs        = { max_on_demand_chips = 8 }
  expect_denied = ["on_demand"]
  plan          = { total = { after = { on_demand_chips = 12 } } }
}

case "as many as before" {
  policies = ["on_demand"]
  plan     = { total = { before = { on_demand_chips = 12 }, after = { on_demand_chips = 12 } } }
}
