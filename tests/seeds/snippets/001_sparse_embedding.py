"""Best practices of distributed training on CPU, earlier edition: sparse updates."""

# --- left out by the document
import psrt.fluid as fluid

dict_size = 1000
# --- the document
data = fluid.layers.data(name='ids', shape=[1], dtype='int64')
fc = fluid.layers.embedding(input=data, size=[dict_size, 16], is_sparse=True)
