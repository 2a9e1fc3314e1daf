"""What plugin authors and embedding programs may use in their tests: fakes, fixtures, leak guards."""
