"""Linear models: f(x) = ⟨w, x⟩ + b under many losses and penalties. The bias is never penalised."""
