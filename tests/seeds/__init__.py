"""The documents psrt began with, as tests: every snippet of theirs, and whole scripts around them.

`snippets/NNN_<topic>.py` holds lines of document NNN as they stand there, after `# --- the
document`, and what it leaves out, after `# --- left out by the document`; imports say psrt for
paddle. Documents: `000` best practice of distributed training on CPU (Fluid 1.7), `001` an earlier
edition of it, `002` the manual for distributed training with Fluid, `003` distributed training of
v2, `004` parallel executor.
"""
