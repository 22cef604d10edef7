"""Rate limits that no test reaches, for tests of other features."""

import json

from vademecum.settings import Rates

RATES = Rates(**dict.fromkeys(Rates.__struct_fields__, 1_000_000))
RATES_JSON = json.dumps(dict.fromkeys(Rates.__struct_fields__, 1_000_000))
