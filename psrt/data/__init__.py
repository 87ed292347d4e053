"""Text files in, mini-batches out.

General layout, in reading order; each file imports only those before it:

    given       numbers that users give, checked
    slots       the fields of an example, batches of them, and the vars they feed
    batch_arrays the arrays of a batch while a kernel fills them
    multislot   the parser that turns MultiSlot lines into arrays
    places      parts of files, and how far a reader has come
    extras      packages psrt can do without, imported when asked for
    remote      files named by URL
    compressed  gzip and zstd, decompressed as they are read
    text_ahead  text that a thread reads ahead
    stored      the bytes of a file, a URL or the standard input, decompressed
    sources     where text comes from, in blocks of lines
    files       which files there are
    sharing     which of them, or which parts, are whose
    pipe        files through a program of the user's
    pieces      examples in pieces of any size, cut into batches
    svmlight    libsvm text → batches
    fields      which columns of a table feed which slot, and as what
    cells       values of a column: ranges of text → numbers
    cut_lines   lines that a kernel cuts first
    table_rows  cells of the lines just cut → slots
    delimited   CSV, TSV and columns between blanks → batches
    pairs       lines of `name:value` → batches
    criteo_table  the public Criteo table → batches
    arrow_columns columns of Parquet and Arrow tables → numbers
    arrow_ends  where Arrow streams and files end
    arrow       Parquet and Arrow files → batches
    formats     a format: how the bytes of a file become batches
    readers     what one thread does with its files
    queue       reader threads that keep a bounded queue of batches filled
    settings    what a dataset is told: slots, files, batch size, threads, the program between
    records     examples in memory as a few arrays
    arena       memory for the words of records
    packing     batches → records
    record_lines  MultiSlot lines → records, without batches in between
    record_readers  what one thread does with its files to keep them
    scattering  records on their way to other trainers
    loading     threads that read whole files into memory
    prefixes    words in front of a MultiSlot line: ins_id and content
    merging     records of the same ins_id, made into one
    memory      the records of a dataset, their order and exchange
    in_memory   datasets that are kept in memory
    datasets    files as batches, read while training
    generator   users' own preprocessing: their lines → MultiSlot text
    decorators  from readers to readers: shuffled, batched, side by side
    read_ahead  the same with threads
    sharded     MultiSlot text spread over the files of a data set directory
    criteo      the public Criteo table → MultiSlot files
    libsvm      libsvm text → MultiSlot files
    idx         images and labels in IDX files (MNIST) → MultiSlot files
    dealing     records that Python makes one at a time
    imikolov    sentences → n-grams or skip-gram pairs
    movielens   MovieLens 1M → MultiSlot files
    avazu       the table of Avazu's contest → MultiSlot files
    skew_plot   a drawing of how unevenly ids occur
    synthetic_text  sentences of a planted model whose perplexity is known
    splitting   one file cut into several
    checking    all that is wrong with files
    statistics  what is in files, slot by slot
    synthetic   Criteo-shaped rows of a planted model whose best possible AUC is known
"""
