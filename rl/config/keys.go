package config

import "github.com/fray-ml/fray/rl"

// words returns the words of a closed set as texts.
func words[T ~string](set ...T) []string {
	out := make([]string, len(set))
	for i, word := range set {
		out[i] = string(word)
	}
	return out
}

func runKeys() []Key {
	return []Key{
		{Path: "launch_mode", Kind: Word, Default: "local", Words: words(rl.LaunchLocal, rl.LaunchRay, rl.LaunchFray),
			Meaning: "where the roles run: processes of this machine, a Ray cluster, jobs of fray"},
		{Path: "project_name", Kind: Text, Default: "nexrl", Meaning: "the project under which loggers keep the run"},
		{Path: "experiment_name", Kind: Text, Default: "run", Meaning: "the name of the run at its loggers"},
		{Path: "run", Kind: Text, Meaning: "a run that has ended in out does not begin again; another value, such as \"2\", begins another one there"},
		{Path: "seed", Kind: Whole, Default: 0, Meaning: "of sampling and of data without a seed of their own"},
		{Path: "recovery", Kind: Word, Default: "journal", Words: words(rl.RecoverJournal, rl.RecoverCheckpoint),
			Meaning: "after a stateful role has died: replay its journal, or rewind the run to its last checkpoint, for which save_freq is 1 or more"},
		{Path: "out", Kind: File, Default: "out/nexrl", Meaning: "directory of the run, seen by all roles: journals, metrics, checkpoints"},
		{Path: "journal", Kind: Place, Meaning: "where the journals are: a directory, or a bucket as gs://BUCKET/PREFIX; journal below out without"},
		{Path: "dump.path", Kind: File, Meaning: "directory for easy_dump; without it nothing is dumped"},
	}
}

// loaderKeys are the keys of a data loader, below "data" and "validate.data".
func loaderKeys(section string) []Key {
	at := section + "."
	return []Key{
		{Path: at + "type", Kind: Class, Default: "mock", Words: []string{"mock", "jsonl", "directory", "torch"},
			Meaning: "mock generates items, jsonl reads lines of a file, directory its files; torch reads data_path as whichever it is"},
		{Path: at + "seed", Kind: Whole, Meaning: "of the order with shuffle; the run's without"},
		{Path: at + "data_path", Kind: File, Meaning: "file or directory of the items; all types but mock need it"},
		{Path: at + "num_samples", Kind: Whole, Default: 100, Low: 1, Meaning: "items of mock"},
		{Path: at + "batch_size", Kind: Whole, Default: 32, Low: 1, Meaning: "items of a loaded batch"},
		{Path: at + "repeat_item", Kind: Whole, Default: 1, Low: 1,
			Meaning: "how often each item is rolled out, as one group; each item of validation is rolled out once"},
		{Path: at + "passes", Kind: Whole, Default: 1, Low: 1, Meaning: "passes over the data; a validation has one"},
		{Path: at + "shuffle", Kind: Flag, Default: false, Meaning: "another order in every pass, by the seed"},
		{Path: at + "keep_batch_order", Kind: Flag, Default: false, Meaning: "the next batch waits until the weights of the last are synced; not in a validation"},
		{Path: at + "drop_last", Kind: Flag, Default: false, Meaning: "leave out a last batch that is not full"},
		{Path: at + "lease_ttl", Kind: Seconds, Default: 30, Above: true, Meaning: "after which a worker that is silent loses its task to another"},
	}
}

func rolloutKeys() []Key {
	return []Key{
		{Path: "rollout_worker.type", Kind: Class, Default: "simple", Words: []string{"mock", "simple", "agent", "single_turn_math"},
			Meaning: "what rolls a task out"},
		{Path: "rollout_worker.num_workers", Kind: Whole, Default: 1, Low: 1, Meaning: "how many; the same as roles.rollout_worker.count"},
		{Path: "rollout_worker.temperature", Kind: Number, Meaning: "of sampling; the inference service's without"},
		{Path: "rollout_worker.max_tokens", Kind: Whole, Low: 1, Meaning: "of a completion; the inference service's limit without"},
		{Path: "rollout_worker.max_length", Kind: Whole, Low: 1, Meaning: "tokens of a trajectory, beyond which it is truncated with reward 0"},
		{Path: "rollout_worker.step_timeout", Kind: Seconds, Above: true, Meaning: "after which a step has failed; none without"},
		{Path: "rollout_worker.concurrency", Kind: Whole, Default: 1, Low: 1, Meaning: "tasks that a worker rolls out at once, each in a thread: its step is called in all of them"},
		{Path: "rollout_worker.max_turns", Kind: Whole, Default: 8, Low: 1, Meaning: "turns of type agent"},
		{Path: "rollout_worker.tools", Kind: Texts, Meaning: "of type agent, each module:name of a Python function"},
	}
}

func trajectoryKeys() []Key {
	return []Key{
		{Path: "trajectory_pool.type", Kind: Class, Default: "default", Words: []string{"default"}, Meaning: "of the pool"},
		{Path: "trajectory_pool.batch_size", Kind: Whole, Default: 32, Low: 1, Meaning: "trajectories of a batch"},
		{Path: "trajectory_pool.group_size", Kind: Whole, Default: 1, Low: 1, Meaning: "trajectories that make a group complete; with key_list"},
		{Path: "trajectory_pool.key_list", Kind: Texts,
			Meaning: "fields that name a trajectory's group: none, one, or several for a hierarchy"},
		{Path: "trajectory_pool.check_batch_ready_function", Kind: Word, Default: string(rl.BatchSizeReached),
			Words:   append(words(rl.BatchSizeReached, rl.LoadedBatchFinished, rl.BatchSizeReachedAndLoadedBatchFinished), "batch_size"),
			Meaning: "when a batch is ready; batch_size is another name of batch_size_reached"},
		{Path: "trajectory_pool.incomplete_groups", Kind: Word, Default: "flush", Words: words(rl.Flush, rl.Drop),
			Meaning: "what becomes of groups that can no longer be complete"},
		{Path: "trajectory_pool.max_bytes", Kind: Whole, Default: 256 << 20, Low: 1 << 10,
			Meaning: "memory of one pool for trajectories; beyond it workers wait"},
	}
}

func algorithmKeys() []Key {
	return []Key{
		{Path: "algorithm.type", Kind: Class, Default: "grpo", Words: []string{"mock", "grpo"}, Meaning: "what makes training batches of trajectories"},
		{Path: "algorithm.batch_size", Kind: Whole, Low: 1, Meaning: "trajectories that it asks for; the pool's batch_size without"},
		{Path: "algorithm.update_fn", Kind: Text, Default: "update_actor", Meaning: "which update the train service makes of a batch"},
		{Path: "algorithm.pad_token_id", Kind: Whole, Default: 0, Meaning: "token that fills responses up to one length"},
		{Path: "algorithm.use_kl_in_reward", Kind: Flag, Default: false, Meaning: "subtract a penalty for the distance from the reference policy"},
		{Path: "algorithm.kl_penalty", Kind: Word, Default: "kl", Words: []string{"kl", "abs", "mse", "low_var_kl"}, Meaning: "the estimate of that distance"},
		{Path: "algorithm.kl_ctrl.type", Kind: Word, Default: "fixed", Words: []string{"fixed", "adaptive"}, Meaning: "how its coefficient is chosen"},
		{Path: "algorithm.kl_ctrl.kl_coef", Kind: Number, Default: 0.001, Meaning: "the coefficient, of adaptive the first one"},
		{Path: "algorithm.kl_ctrl.kl_reward_coef", Kind: Number, Meaning: "another name of kl_coef, as configurations of NexRL have it; it comes first"},
		{Path: "algorithm.kl_ctrl.target_kl", Kind: Number, Default: 6, Above: true, Meaning: "of adaptive: the wanted divergence in nats"},
		{Path: "algorithm.kl_ctrl.horizon", Kind: Number, Default: 10000, Above: true, Meaning: "of adaptive: samples in which an error of 1 doubles the coefficient"},
	}
}

func trainKeys() []Key {
	return []Key{
		{Path: "train_batch_pool.type", Kind: Class, Default: "default", Words: []string{"default"}, Meaning: "of the pool"},
		{Path: "train_batch_pool.batch_size", Kind: Whole, Low: 1, Meaning: "for configurations of NexRL, without effect: a training batch is what the algorithm makes of one batch of trajectories"},
		{Path: "train_worker.type", Kind: Class, Default: "default", Words: []string{"default"}, Meaning: "what trains"},
		{Path: "train_worker.total_train_steps", Kind: Whole, Default: 1000, Low: 1, Meaning: "after which the run is finished"},
		{Path: "train_worker.num_workers", Kind: Whole, Default: 1, Low: 1, Meaning: "how many; the same as roles.train_worker.count"},
		{Path: "train_worker.checkpoint_path", Kind: File, Meaning: "directory of checkpoints; checkpoints below out without"},
		{Path: "train_worker.sync_weight_path", Kind: File, Meaning: "directory through which weights are synced; sync_weights below out without"},
		{Path: "train_worker.save_freq", Kind: Whole, Default: 0, Meaning: "steps between checkpoints; 0: no checkpoints, so that a later run cannot go on"},
		{Path: "train_worker.remove_previous_ckpt", Kind: Flag, Default: false, Meaning: "keep only the newest complete checkpoint"},
	}
}

func weightKeys() []Key {
	return []Key{
		{Path: "weight.type", Kind: Class, Default: "default", Words: []string{"default"}, Meaning: "of the controller"},
		{Path: "weight.sync_mode", Kind: Word, Default: "sync", Words: words(rl.Sync, rl.FullyAsync, rl.BatchAsync),
			Meaning: "sync: rollouts wait for each update; batch-async: at staleness_threshold; fully-async: never"},
		{Path: "weight.staleness_threshold", Kind: Whole, Default: 0, Meaning: "of batch-async: updates that rollouts may lag behind; 0 is sync"},
		{Path: "weight.validate_freq", Kind: Whole, Default: 0, Meaning: "updates between validations; 0: none"},
	}
}

func serviceKeys() []Key {
	return []Key{
		{Path: "service.train_service.backend", Kind: Class, Default: "actor", Words: []string{"mock", "actor", "nextrainer"},
			Meaning: "actor calls the role train_service; nextrainer is an error that names what to write instead"},
		{Path: "service.train_service.url", Kind: Text, Meaning: "of a service outside of the run, for a client of yours as backend"},
		{Path: "service.train_service.model_tag", Kind: Text, Default: rl.DefaultModel, Meaning: "the model that it trains"},
		{Path: "service.train_service.identifier", Kind: Text, Meaning: "of the run at the service, for a client of yours as backend"},
		{Path: "service.train_service.class", Kind: Text, Meaning: "module:Class that the role train_service hosts"},
		{Path: "service.train_service.config", Kind: Any, Meaning: "what that class reads"},
		{Path: "service.inference_service.backend", Kind: Class, Default: "vllm", Words: []string{"mock", "vllm", "sglang", "openai"},
			Meaning: "which server it is; all have the protocol of OpenAI"},
		{Path: "service.inference_service.url", Kind: Text, Meaning: "of a server outside of the run; with a role inference_service its own"},
		{Path: "service.inference_service.model_tag", Kind: Text, Default: rl.DefaultModel, Meaning: "the model that it serves"},
		{Path: "service.inference_service.model", Kind: Text, Meaning: "the name that requests have; model_tag without"},
		{Path: "service.inference_service.api_key", Kind: Text, Meaning: "of the server"},
		{Path: "service.inference_service.max_retries", Kind: Whole, Default: 3, Meaning: "of a request that failed"},
		{Path: "service.inference_service.freeze_for_weight_sync", Kind: Flag, Default: true, Meaning: "requests wait while weights are synced"},
		{Path: "service.inference_service.timeout", Kind: Seconds, Default: 600, Above: true, Meaning: "of a request; 10 s of them at most for its connection"},
		{Path: "service.inference_service.sync_timeout", Kind: Seconds, Default: 60, Above: true, Meaning: "the longest wait for a sync of weights"},
		{Path: "service.inference_service.class", Kind: Text, Meaning: "module:Class that the role inference_service hosts"},
		{Path: "service.inference_service.config", Kind: Any, Meaning: "what that class reads"},
	}
}

func validateKeys() []Key {
	out := []Key{{Path: "validate.validate_before_train", Kind: Flag, Default: false, Meaning: "validate once before the first step"}}
	data := loaderKeys("validate.data")
	data[0].Default = nil
	data[0].Meaning = "as data.type; without it there is no validation"
	out = append(out, data...)
	return append(out,
		Key{Path: "validate.eval.type", Kind: Class, Default: "default", Words: []string{"default"}, Meaning: "of the validator"},
		Key{Path: "resume.mode", Kind: Word, Default: "disable", Words: words(rl.ResumeDisable, rl.ResumeAuto, rl.ResumeFromPath),
			Meaning: "begin at step 0, at the newest checkpoint if there is one, or at resume_path"},
		Key{Path: "resume.resume_path", Kind: File, Meaning: "the checkpoint of from_path"},
		Key{Path: "logger.backend", Kind: Words, Default: []string{"console"}, Words: words(rl.LogConsole, rl.LogJSONL, rl.LogTensorboard, rl.LogWandb),
			Meaning: "where metrics go"},
		Key{Path: "logger.path", Kind: File, Meaning: "directory of jsonl and tensorboard; metrics below out without"},
	)
}

func monitorKeys() []Key {
	return []Key{
		{Path: "runtime_monitor.exception_handling.enabled", Kind: Flag, Default: true, Meaning: "act on reported errors"},
		{Path: "runtime_monitor.exception_handling.check_interval", Kind: Seconds, Default: 1, Above: true, Meaning: "from check to check"},
		{Path: "runtime_monitor.exception_handling.policy", Kind: Word, Default: "stop_on_error",
			Words:   words(rl.StopOnError, rl.ContinueOnAny, rl.StopOnCritical),
			Meaning: "stop at an error that a module reports, never, or only at one after which the run cannot go on"},
		{Path: "runtime_monitor.health_check.enabled", Kind: Flag, Default: true, Meaning: "check that every role is alive"},
		{Path: "runtime_monitor.health_check.check_interval", Kind: Seconds, Default: 10, Above: true, Meaning: "from check to check"},
		{Path: "runtime_monitor.health_check.timeout", Kind: Seconds, Default: 5, Above: true, Meaning: "of one check"},
	}
}

func roleKeys() []Key {
	return []Key{
		{Path: "roles.*.count", Kind: Whole, Default: 1, Meaning: "how many actors"},
		{Path: "roles.*.colocation_group", Kind: Text, Meaning: "roles with the same group and count share processes; each is alone without"},
	}
}
