"""What is wanted and what is there: desired and actual state of world, and the records that they are made of."""
