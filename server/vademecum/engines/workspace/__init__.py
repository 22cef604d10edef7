"""The folder in which an agent works: whose project it is. The only engine that looks for `.vademecum.toml` and `.git`."""

from vademecum.engines.workspace.machine_id import machine
from vademecum.engines.workspace.resolve import Place, identify, locate

__all__ = ["Place", "identify", "locate", "machine"]
