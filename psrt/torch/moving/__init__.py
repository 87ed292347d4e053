"""Models that come from elsewhere or go there: TorchRec, plain torch, saved models of psrt.

saved_tables   rows of tables as a saved model
from_torchrec  collections from those of TorchRec
plain_tables   tables of an exported model
export         models without psrt.torch tables
"""

from psrt.torch.moving.export import export
from psrt.torch.moving.from_torchrec import from_torchrec
from psrt.torch.moving.saved_tables import save_tables

__all__ = ["export", "from_torchrec", "save_tables"]
