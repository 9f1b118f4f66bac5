"""Actors on Ray: their names, the Ray actors that host them, and how programs without Ray reach them.

The registry of a namespace has a `side` for them. It composes `endpoint_registry` (where actors listen, by
`endpoint_table`), `keeper` (the attempts at hosting one, by `launcher`) and `metadata_service` (for programs
without Ray). Each attempt is a `host`; clients and hosts ask by `metadata`.
"""
