"""Repairs what an inspection found: the plan, who stands in its way, and the steps themselves."""
