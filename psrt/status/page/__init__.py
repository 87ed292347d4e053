"""page: a running job as one page for browsers, live, without a build step or outside requests.

verdict       the waits of a job, and the first line of the page
trainer_view  a record of each trainer
table_view    a record of each table: shards, memory, ids pulled most
view          everything that the page shows, as plain data, from two reports of the pservers
feed          looks that all readers of the page share, as a stream of events
serving       the paths of the page, with headers that allow nothing from elsewhere
static        the page itself: HTML, style, script
"""

from psrt.status.page.serving import JobPage

__all__ = ["JobPage"]
