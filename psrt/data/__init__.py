"""Text files in, mini-batches out.

General layout, in reading order; each file imports only those before it:

    multislot   slots, batches, and the parser that turns MultiSlot lines into arrays
    files       which files there are, which are this trainer's, and their bytes in blocks of lines
    queue       reader threads that keep a bounded queue of batches filled
    sharded     MultiSlot text spread over the files of a data set directory
    criteo      the public Criteo table → MultiSlot files
    libsvm      libsvm text → MultiSlot files
    idx         images and labels in IDX files (MNIST) → MultiSlot files
    synthetic   Criteo-shaped rows of a planted model whose best possible AUC is known
"""
