"""Claims and volumes find each other, are protected while used, and part."""
