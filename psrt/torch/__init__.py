"""psrt.torch: PyTorch models whose embedding tables are on pservers, in an unmodified loop.

    optim            server-side optimizers with the names and numbers of torch's
    declared         tables and dense parameters as a partition plan reads them
    backends         the places of tables: this process, or pservers
    compiling        the border of torch.compile
    staging          copies between this host and a GPU
    first_rows       tables that begin with given rows
    rows_ahead       rows that are read before their lookup
    table            the lookups of a step, whose rows are leaves
    session          the tables of a model and the connection to them
    connecting       local and connect
    pooling          rows at positions, one by one or pooled, and their gradients
    modules          Embedding and EmbeddingBag
    jagged           several lists of ids, for collections
    embedding_collections  all features of a model in one pull
    dense_on_server  dense parameters on pservers, too
    table_optimizer  the torch.optim.Optimizer of tables
    cuts             moments, and how all ranks make a cut (a sub-room)
    here             what is updated in this process (a sub-room)
    saving           a cut with what torch has beside it, positions in the data (a sub-room)
    reading          batches of a loader, read ahead with their rows (a sub-room)
    moving           tables from elsewhere, and to elsewhere (a sub-room)

Needs the package torch (`psrt-cluster[torch]`; the wheel for CPUs is enough).
"""

from psrt.core.extras import required

required("torch", "torch", "psrt.torch")

from psrt.core.specs import TableOptions  # noqa: E402
from psrt.torch import optim  # noqa: E402
from psrt.torch.connecting import connect, local  # noqa: E402
from psrt.torch.dense_on_server import DenseOnServer  # noqa: E402
from psrt.torch.embedding_collections import (  # noqa: E402
    EmbeddingBagCollection,
    EmbeddingBagConfig,
    EmbeddingCollection,
    EmbeddingConfig,
)
from psrt.torch.jagged import Jagged  # noqa: E402
from psrt.torch.modules import Embedding, EmbeddingBag  # noqa: E402
from psrt.torch.moving import export, from_torchrec, save_tables  # noqa: E402
from psrt.torch.reading import Prefetch, collate  # noqa: E402
from psrt.torch.saving import Checkpointer, DealtBatches, Resumable  # noqa: E402
from psrt.torch.session import TableSession  # noqa: E402
from psrt.torch.table_optimizer import TableOptimizer  # noqa: E402

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingBagCollection", "EmbeddingBagConfig"]
__all__ += ["EmbeddingCollection", "EmbeddingConfig", "Jagged", "Prefetch", "TableOptimizer"]
__all__ += ["Checkpointer", "DealtBatches", "DenseOnServer", "Resumable"]
__all__ += ["TableOptions", "TableSession", "collate", "connect", "export"]
__all__ += ["from_torchrec", "local", "optim", "save_tables"]
