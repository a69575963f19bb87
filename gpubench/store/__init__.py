"""A campaign on disk as the tool sees it: its plan, what became of every planned run, files whole or not at all.

Only this package and the node half's writer know where a file of a campaign stands.
"""

from gpubench.store.accounting import Accounting, RunOutcome, account
from gpubench.store.campaign import Campaign, create_campaign, newest_campaign
from gpubench.store.rundirs import RunDirectory, read_provenance, read_record, run_directories

__all__ = [
    "Accounting",
    "Campaign",
    "RunDirectory",
    "RunOutcome",
    "account",
    "create_campaign",
    "newest_campaign",
    "read_provenance",
    "read_record",
    "run_directories",
]
