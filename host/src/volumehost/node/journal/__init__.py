"""The journal: what it holds, its lines, and how it is kept short."""
