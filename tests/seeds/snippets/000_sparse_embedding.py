"""Best practices of distributed training on CPU: "Improve communication speed".

The document has lost the middle of its first line; it is whole in the earlier edition (001).
"""

# --- left out by the document
import psrt.fluid as fluid

dict_size = 1000
data = fluid.layers.data(name=\
# --- the document
'ids', shape=[1], dtype='int64')
fc = fluid.layers.embedding(input=data, size=[dict_size, 16], is_sparse=True)
