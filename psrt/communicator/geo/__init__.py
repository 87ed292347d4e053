"""geo: files in reading order.

local_table    A sparse table in the memory of the trainer that trains it
geo_table      A trainer's own table of a Geo job: it knows what it has changed since the last
               agreement
geo_dense      The dense parameters of a Geo trainer: what it has changed since the last
               agreement
geo_agreement  What a Geo trainer has agreed on with the pservers, over all of its parameters
sync_schedule  When a trainer of a Geo job exchanges: a pure decision at the end of every step
geo            Geo: every trainer trains by itself; now and then they agree on what has changed
"""

from __future__ import annotations

from psrt.communicator.geo.geo import GeoCommunicator
from psrt.communicator.geo.geo_agreement import LocalParameters
from psrt.communicator.geo.geo_table import GeoTable
from psrt.communicator.geo.local_table import LocalTable

__all__ = ["GeoCommunicator", "GeoTable", "LocalParameters", "LocalTable"]
