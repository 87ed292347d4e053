"""Settings of every process: declared in `schema`, filled by `load`, printed by `render`.

Reading order: settings → sizing → table_sections → schema → communication → declared → derived →
roles → process → load → older_flags → init → render.
"""
