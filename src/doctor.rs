//! Is everything there that a run needs?
