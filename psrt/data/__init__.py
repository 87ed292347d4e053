"""Files of examples in, mini-batches out: rooms and files in reading order.

checks    Checks of the numbers that users give
hashing   Ids of texts, the same for files, converters and programs that serve a model
slots     The fields of an example, batches of them, and the vars they feed
sources   Bytes of files, URLs and pipes, and each trainer's shard of them
formats   Text and columnar files to the arrays of batches
reading   Reader threads, the bounded queue of batches, reading ahead
datasets  In-memory and queue datasets, their shuffle and exchange
convert   Public data sets and other formats to MultiSlot files, synthetic data
inspect   Checks and statistics of files
python    Users' generators and reader decorators
"""
