"""Parameters that are updated in this process.

geo_parameters  parameters that a trainer of mode geo updates itself
local_tables    the backend of tables in this process
"""

from psrt.torch.here.geo_parameters import GeoParameters
from psrt.torch.here.local_tables import LocalTables

__all__ = ["GeoParameters", "LocalTables"]
