"""What a tensor is for, from its path in a nested checkpoint."""

from __future__ import annotations

from mpdoctor.replay.checkpoints.checkpoint import Role

_STATE_OF_OPTIMIZER = {
    "exp_avg": Role.FIRST_MOMENT,
    "exp_avg_sq": Role.SECOND_MOMENT,
    "max_exp_avg_sq": Role.SECOND_MOMENT,
    "exp_inf": Role.SECOND_MOMENT,
    "exp_avg_sq_row": Role.SECOND_MOMENT,
    "exp_avg_sq_col": Role.SECOND_MOMENT,
    "square_avg": Role.SECOND_MOMENT,
    "sum": Role.SECOND_MOMENT,
    "momentum_buffer": Role.MOMENTUM,
    "step": Role.STEP,
    "master_param": Role.MASTER,
}
"""Last part of the path, inside an optimizer's state."""

_OPTIMIZER = frozenset(
    {"optimizer", "optimizers", "optimizer_states", "optimizer_state_dict", "optimizer_state", "optim", "opt", "base_optimizer_state"}
)
_MASTER = frozenset(
    {"fp32_flat_groups", "single_partition_of_fp32_groups", "fp32_groups_flat_partition", "fp32_from_fp16_params", "fp32_params", "master_params"}
)
_SCALER = frozenset({"scaler", "grad_scaler", "amp", "amp_scaler", "loss_scaler", "scaler_state_dict"})
_RNG = frozenset(
    {
        "rng_state",
        "rng_states",
        "cpu_rng_state",
        "cuda_rng_state",
        "random_rng_state",
        "torch_rng_state",
        "np_rng_state",
        "torch_manual_seed",
        "numpy_random_seed",
        "random_state",
        "rng_tracker_states",
    }
)
_EMA = frozenset({"ema", "ema_state_dict", "ema_model", "model_ema", "shadow_params", "averaged_params", "state_dict_ema", "ema_weights"})
_ADAPTER_MARKS = ("lora_", "lokr_", "hada_", "ia3_", "oft_", "vera_", "dora_", "prompt_embeddings", "modules_to_save")


def role_of(path: tuple[str, ...], default: Role = Role.WEIGHT) -> Role:
    """Role of the tensor at a path; `default` where the path says nothing.

    Keys that are parameter names (`layers.0.wo.weight`) are taken apart only for their adapter marks:
    a parameter may well be called `scale` or `step`.
    """
    if len(path) <= 1:
        return _role_of_parameter(path[0], default) if path else default
    last, above = path[-1], {part.lower() for part in path[:-1]}
    if above & _RNG or last.lower() in _RNG:
        return Role.RNG
    if above & _SCALER:
        return Role.SCALER
    if above & _MASTER or last in _MASTER:
        return Role.MASTER
    in_state = "state" in above and len(path) >= 3
    if (in_state or above & _OPTIMIZER) and last in _STATE_OF_OPTIMIZER:
        return _STATE_OF_OPTIMIZER[last]
    if above & _OPTIMIZER or in_state:
        return Role.OTHER
    if above & _EMA:
        return Role.EMA
    return _role_of_parameter(".".join(path), default)


def _role_of_parameter(name: str, default: Role) -> Role:
    if name.lower() in _RNG:
        return Role.RNG
    return Role.ADAPTER if any(mark in name for mark in _ADAPTER_MARKS) else default
