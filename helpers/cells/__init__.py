"""What stands behind %%importable: a lesson's module, its sections, its folder, its free names."""
