"""Training whose parameters and optimiser states are shared out to the devices (FSDP)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from structpe.tasks.training.weights import full, gathered

__all__ = ["Sharded", "clip", "whole"]


class Sharded(DDPStrategy):
    """Each device keeps its part of the parameters, gradients and optimiser states (``torch.distributed.fsdp``).

    For a step, and for a validation, the parameters are brought together; gradients are averaged and shared out again.
    Processes are started, and checkpoints written, as for DDP: checkpoints are those of one device, and either can go
    on with what the other has written. It needs no GPU.
    """

    def configure_ddp(self) -> None:
        """Share the parameters out; called where DDP would wrap the model."""
        assert isinstance(self.model, nn.Module)
        mesh = init_device_mesh(self.root_device.type, (self.world_size,))
        # PyTorch refuses to share out scalars. Each device has those, as with DDP.
        self._scalars = {p for p in self.model.parameters() if not p.ndim}
        # One group: a task may call any part of its model, not only those whose parameters would then be at hand.
        sharded = fully_shard(self.model, mesh=mesh, reshard_after_forward=False, ignored_params=self._scalars)
        if self.root_device.type == "cpu":
            sharded.set_force_sum_reduction_for_comms(True)  # Gloo has no averages
        register_fsdp_forward_method(self.model, "training_step")

    def post_backward(self, closure_loss: Tensor) -> None:
        """Average the gradients of scalars. What was averaged after an earlier batch of the step stays the same."""
        assert self.model is not None
        for scalar in (p for p in self.model.parameters() if p in self._scalars and p.requires_grad):
            scalar.grad = torch.zeros_like(scalar) if scalar.grad is None else scalar.grad
            torch.distributed.all_reduce(scalar.grad)
            scalar.grad /= self.world_size

    def lightning_module_state_dict(self) -> dict[str, Any]:
        assert self.lightning_module is not None
        return gathered(self.lightning_module)

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        state: dict[str, Any] = super().optimizer_state(optimizer)
        parts = {number: {name: full(value) for name, value in each.items()} for number, each in state["state"].items()}
        return {**state, "state": parts}

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Give each optimiser its part of the states of a checkpoint, which are whole."""
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            parts = {
                number: {name: _shared_out(value, parameters[number]) for name, value in each.items()}
                for number, each in state["state"].items()
            }
            optimizer.load_state_dict({**state, "state": parts})

    def teardown(self) -> None:
        """Bring the parameters together, so that the trained model is one like any other."""
        model = self.lightning_module
        together = [] if model is None else [(module, *each) for module in model.modules() for each in _whole(module)]
        super().teardown()  # moves what is shared out
        for module, name, parameter in together:
            module.register_parameter(name, parameter)


@contextmanager
def whole(module: nn.Module) -> Iterator[None]:
    """A context in which each device has all parameters of a module, if they are shared out."""
    if not isinstance(module, FSDPModule):
        yield
        return
    module.unshard()
    try:
        yield
    finally:
        module.reshard()


def clip(parameters: Iterable[Tensor], most: float) -> None:
    """Scale the gradients of all parameters, of which some are shared out, so that their norm is no larger."""
    given = [p for p in parameters if p.grad is not None]
    parts = [[p for p in given if isinstance(p, DTensor) is shared] for shared in (True, False)]
    norms = [full(nn.utils.get_total_norm([p.grad for p in each])) for each in parts if each]  # type: ignore[misc]
    total = torch.linalg.vector_norm(torch.stack(norms))
    for each in parts:
        nn.utils.clip_grads_with_norm_(each, most, total, foreach=False)


def _whole(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Those of a module's own parameters that are shared out, whole and on the CPU."""
    for name, parameter in module.named_parameters(recurse=False):
        if isinstance(parameter, DTensor):
            yield name, nn.Parameter(full(parameter.detach()).cpu(), parameter.requires_grad)


def _shared_out(value: Any, parameter: Tensor) -> Any:
    if not isinstance(parameter, DTensor) or not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)
