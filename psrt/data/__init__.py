"""Text files in, mini-batches out.

In reading order:

    checks    numbers that users give, checked
    slots     the fields of an example, batches of them, and the vars they feed
    extras    packages psrt can do without, imported when asked for
    sources   bytes of files, URLs and pipes, and each trainer's share of them
    formats   text and columnar files to the arrays of batches
    reading   reader threads and the bounded queue of batches
    datasets  in-memory and queue datasets, their shuffle and exchange
    convert   public data sets and other formats to MultiSlot files, synthetic data
    inspect   checks and statistics of files
    python    users' generators and reader decorators
"""
