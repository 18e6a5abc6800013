//! The plan a model makes before it works, and what makes one valid.
