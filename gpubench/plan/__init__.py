"""From what the user asked to what will be run: pure and deterministic from the seed."""

from gpubench.plan.additions import Repair, plan_advance, plan_more, plan_repair
from gpubench.plan.make import History, Request, make_plan

__all__ = ["History", "Repair", "Request", "make_plan", "plan_advance", "plan_more", "plan_repair"]
