"""Benchmarks of psrt. Each file here is a command: `python -m benchmarks.NAME`.

`python -m benchmarks` runs several and prints a table; docs/benchmarks.md has the figures.
In reading order:

    limits               memory, a loopback socket and matrix products of this machine
    w1_ctr               a CTR network, trained by pserver and trainer processes
    observed             the cost of metrics, JSON logs and polled pages in W1 (a folder)
    w2_rows              rows, pulled and pushed by one trainer
    w3_dense             one large dense parameter
    w4_kernels           optimizer kernels on one thread
    w5_feed              text files into batches and into memory
    w6_word2vec          word vectors, optionally over slow links
    w7_executor          the executor in one process
    w8_memory            memory of rows on a pserver
    w10_torch            tables beside a torch loop, with torch's own (a folder)
    w11_collective       W1 without pservers, beside DDP of PyTorch (a folder)
    rows_by_size         rows per second by table size, width, batch and trainers
    latency              time of a pull of one row
    cut_files            array files of a cut against plain files of the same bytes
    cut_chains           full and incremental cuts, restored and merged (a folder)
    cuts_while_training  steps of trainers while cuts are written (a folder)
    durability_cost      W1 with each kind of durability (a folder)
    frozen_tables        freezes of a table while others push to it (a folder)
    recovery             pauses of trainers when pservers are killed (a folder)
    sandbox              W1 as services of systemd, inside their sandbox and outside (a folder)
    startup              time until a pserver is ready
    stress               many trainers, with every sum checked
    accuracy_by_mode     test AUC in every mode
    fluid_ctr            a network of PaddlePaddle's zoo by Fluid's API and by psrt's (a folder)
    resumed_accuracy     test AUC of a training that was stopped and resumed (a folder)
    global_shuffle       records exchanged between trainers
    torch_accuracy       test AUC of psrt.torch and of PyTorch (a folder)
    torch_agreement      four models in psrt and in PyTorch
    size_model           predictions of `psrt plan --size` against real processes (a folder)
    simulate_rounds      synchronous rounds, computed with queues
    scaling_table        the tables of docs/how-to/size-a-cluster.md
    shared_sets          public sample data sets (a folder)
    pictures             charts from the figures of a run (a folder)

Folders that these files import:

    measuring            processes, repeats, the table of `bin/bench`
    workloads            data, networks and trainers of W1 to W8
    peers                the other side of comparisons with PyTorch
"""
