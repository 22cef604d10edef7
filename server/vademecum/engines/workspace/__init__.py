"""Find the project of an agent's working folder. Only this engine looks for `.vademecum.toml` and `.git`."""

from vademecum.engines.workspace.machine_id import compute_machine_id
from vademecum.engines.workspace.resolve import ProjectLocation, identify, locate

__all__ = ["ProjectLocation", "compute_machine_id", "identify", "locate"]
