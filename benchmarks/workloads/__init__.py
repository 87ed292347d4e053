"""Data, networks and trainers of the workloads.

In reading order:

    ctr_data      batches and ids shaped like Criteo's
    gemm          the matrix products of the CTR network: the ceiling of W1 and W7
    w1_job        the CTR network as a job of real processes
    trainers      connections of trainers that only pull and push
    row_trainer   a process that pulls and pushes rows, for `rows_by_size` and `latency`
    w7_model      the CTR network in one process
    w7_executors  executors of that network, on one thread and on several
    w7_figures    medians of the rounds of W7
    w5_train      the same network, trained from files and from memory
    zipf_text     a text of random words for W6
    word_scores   scores of word vectors for W6
"""
