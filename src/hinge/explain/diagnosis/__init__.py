"""Diagnosis: the parts of a model's risk, findings and advice."""
