"""Data on disk: folders of plain .npy files under a manifest, written whole, checked, and read ahead."""
