"""Tables that are filled from a cut while their pserver serves.

In reading order:

    load_order    decisions: the pages to read next, and tables that are complete
    load_waits    calls that wait for tables
    table_load    one table's values in a cut, as pages that several threads may put
    table_loader  threads that fill tables, and futures of calls that wait for them
    waiting_calls  calls that need tables which are being loaded
"""

from psrt.pserver.loading.table_load import TableLoad
from psrt.pserver.loading.table_loader import TableLoader
from psrt.pserver.loading.waiting_calls import handled_later

__all__ = ["TableLoad", "TableLoader", "handled_later"]
