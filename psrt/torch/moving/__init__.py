"""Tables from elsewhere, and to elsewhere.

saved_tables      rows of tables as a saved model
torchrec_configs  collections from those of TorchRec
plain_tables      tables of an exported model
exporting         models without psrt.torch tables
"""

from psrt.torch.moving.exporting import export
from psrt.torch.moving.saved_tables import save_tables
from psrt.torch.moving.torchrec_configs import from_torchrec

__all__ = ["export", "from_torchrec", "save_tables"]
