"""What a file of another kind is, by how it starts, and what to do with it."""

_CONTENTS = {  # by how it starts
    b"\x89HDF\r\n\x1a\n": "an HDF5 file: read it with Hdf5Dataset, or name it .h5",
    b"\x93NUMPY": "a .npy file: read it with NpyDataset, or name it .npy",
    b"PK\x03\x04": "a zip or .npz archive, which has no rows to read: save each array with np.save",
    b"\x80": "a Python pickle, which is never opened here: save the array itself with np.save",
    b"PAR1": "a parquet file: save its columns with np.save",
    b"ARROW1": "an Arrow file: save its columns with np.save",
    b"CDF": "a file of netCDF 3: convert it with nccopy -k nc4",
    b"\x1f\x8b": "compressed with gzip: unpack it with gunzip",
    b"(\xb5/\xfd": "compressed with zstd: unpack it with unzstd",
    b"version https://git-lfs": "a pointer of git-lfs in place of the data: run git lfs pull",
    b"<": "text, perhaps a web page (HTML) in place of a download: download it again",
}


def looks_like(start: bytes) -> str:
    """Return what a file is that starts so, and what to do with it."""
    for magic, what in _CONTENTS.items():
        if start.startswith(magic):
            return what
    if not start:
        return "empty: write it again"
    if start.isascii() and b"\0" not in start:
        return f"text, it starts with {start[:8]!r}: save its numbers with np.save"
    return f"unknown, it starts with {start[:8]!r}: write it with np.save or h5py"
