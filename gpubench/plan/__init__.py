"""From what the user asked to what will be run: pure and deterministic from the seed."""

from gpubench.plan.advance import plan_advance
from gpubench.plan.make import History, Request, make_plan
from gpubench.plan.more_blocks import plan_more
from gpubench.plan.repair import Repair, plan_repair

__all__ = ["History", "Repair", "Request", "make_plan", "plan_advance", "plan_more", "plan_repair"]
