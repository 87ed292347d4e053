"""Manual for distributed training with Fluid: a distributed embedding table."""

# --- left out by the document
import psrt.fluid as fluid

dict_size, embedding_width = 1 << 40, 8
data = fluid.layers.data(name="ids", shape=[1], dtype="int64")
# --- the document
emb = fluid.layers.embedding(
# --- left out by the document
        input=data,
# --- the document
        size=[dict_size, embedding_width],
# --- left out by the document
        is_distributed=True,
        is_sparse=True)
