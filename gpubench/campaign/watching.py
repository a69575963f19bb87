"""Watch the jobs of a campaign until they have ended."""

import time

from gpubench.campaign.interrupts import interrupts
from gpubench.campaign.observer import Observe, unobserved
from gpubench.errors import InterruptedByUserError, SchedulerError
from gpubench.render.shell import command_line
from gpubench.schedulers import JobState
from gpubench.store.campaign import Campaign
from gpubench.store.states import poll, polled_states

ASK_S = 5.0
"""Seconds between two queries of a scheduler that others use, too."""
MOST_FAILURES = 12
"""So many consecutive queries may fail (one minute): a controller may be restarted in this time."""


def watch_jobs(campaign: Campaign, observe: Observe = unobserved) -> dict[str, JobState]:
    """The state of every job, after waiting until none of the campaign waits or runs.

    Ctrl-C ends the watching, not the jobs. A scheduler that fails to answer is asked again.

    Raises:
        InterruptedByUserError: Ctrl-C or a signal.
        MissingToolError: the scheduler isn't on this machine.
        SchedulerError: it failed to answer ``MOST_FAILURES`` times in a row.
    """
    with interrupts() as interrupted, observe(campaign, joining=True) as observer:
        standings: dict[str, str] = {}
        asked_at, failures = 0.0, 0
        while True:
            observer.look()
            if interrupted:
                raise InterruptedByUserError(
                    f"stopped watching by {interrupted[0]}; the jobs continue",
                    then=command_line(["gpubench", "status", str(campaign.directory)]),
                )
            if time.monotonic() - asked_at > ASK_S:
                try:
                    states = polled_states(campaign)
                    doubts = [f"job {job}: {state.doubt}" for job, state in states.items() if state.doubt]
                    ended = not any(state.alive for state in states.values())
                    if ended and doubts and failures + 1 < MOST_FAILURES:
                        raise SchedulerError(doubts[0])
                    if ended:
                        poll(campaign)
                except SchedulerError as error:
                    failures += 1
                    if failures == MOST_FAILURES:
                        raise
                    if failures == 1:
                        observer.log(f"{error.what}; trying again every {ASK_S:g} s")
                else:
                    failures = 0
                    changed = {job: state for job, state in states.items() if standings.get(job) != state.standing}
                    for job, state in changed.items():
                        standings[job] = state.standing
                        observer.log(f"job {job} ({state.job_id}): {state.standing}")
                    if ended:
                        observer.look()
                        return states
                asked_at = time.monotonic()
            time.sleep(0.5)
