"""Find the project of an agent's working folder. Only this engine looks for `.vademecum.toml` and `.git`."""

from vademecum.engines.workspace.machine_id import machine
from vademecum.engines.workspace.resolve import Place, identify, locate

__all__ = ["Place", "identify", "locate", "machine"]
