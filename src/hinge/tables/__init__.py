"""Tables: files and data frames to typed columns."""
