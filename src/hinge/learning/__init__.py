"""From a table to a chosen, scored and explained model."""
