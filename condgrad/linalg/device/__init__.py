"""Data on an accelerator: kernels that read X once for a look, and the arrays that they work on."""
