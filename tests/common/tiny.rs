//! Definitions of work so small that a test can afford much of it.

// Each test crate uses its own part of this.
#![allow(unused_macros, unused_imports)]

/// A study of fits: its head, its grid but for the tolerance, and what follows.
macro_rules! fits {
    ($head:literal, $grid:literal $(, $more:literal)?) => {
        concat!(
            $head,
            "\nkind = \"fit\"\nview = \"logit-growth\"\n[grid]\n",
            $grid,
            "\ntolerance = [0.3]\n[search]\nstarts = 2\npolished = 1\nrough_iterations = 60\niterations = 120\n",
            "relative_decrease = 1e-3\n[[target]]\nfamily = \"dirichlet-band\"\nwindow = 4\n",
            $($more)?
        )
    };
}

/// A training of one layer: its steps, and how often something is done.
macro_rules! run {
    ($steps:literal) => {
        concat!(
            "layers = 1\nd_model = 8\nheads = 2\ncontext = 8\nbatch = 2\nwarmup_steps = 2\neval_batches = 2\n",
            $steps,
            "\ncorpus = { tokens = 4000 }\n"
        )
    };
}

pub(crate) use {fits, run};
