"""Files that survive crashes, on disks and in object stores: arrays and JSON, checksummed.

In reading order:

    failures          errors of stored files: damaged, missing, refused
    checksums         64-bit checksums (XXH3) of buffers and of their chunks
    seals             size and checksum of a whole file, for a manifest
    array_layout      the bytes of an array file: headers, index, trailer
    array_writer      writes an array file page by page
    array_reader      reads and verifies pages of an array file
    json_file         a JSON document that contains its checksum
    directory         the protocol of a directory of files with durable commits
    disk              the operations of a local disk
    local_directory   a directory on a disk
    remote_directory  a directory behind an fsspec URL
    pacing            limits the rate at which files are written
    locate            the directory that a path or URL names

A file is visible under its name only when it is complete and durable. Reference:
docs/reference/checkpoint-format.md.
"""
