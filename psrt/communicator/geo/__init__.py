"""Training on the trainer, with an exchange of changes every few steps.

local_table    a sparse table in the memory of the trainer that trains it
geo_table      a local table that returns its changes since the last agreement
local_parameters  the protocol of the parameters that a trainer updates itself
geo_dense      dense parameters, and their changes since the last agreement
geo_state      what a cut needs of a trainer, as pages, and a trainer restored from them
geo_agreement  the state that a trainer shares with the pservers, over all of its parameters
sync_schedule  the steps at which a trainer exchanges
cut_turns      turns of the training thread and of a cut
geo            Geo: the communicator
"""

from psrt.communicator.geo.geo import GeoCommunicator
from psrt.communicator.geo.geo_table import GeoTable
from psrt.communicator.geo.local_parameters import LocalParameters, UpdateState
from psrt.communicator.geo.local_table import LocalTable

__all__ = ["GeoCommunicator", "GeoTable", "LocalParameters", "LocalTable", "UpdateState"]
