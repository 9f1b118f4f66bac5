"""Training: the worker that takes batches, the services that compute, and checkpoints of both.

Start with `worker.TrainWorker`; to compute with a library of your own, subclass `service.TrainService`.
"""
